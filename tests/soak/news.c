/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that costs next to nothing and has news: each SIGUSR1 makes it write one
 * notifications/tools/list_changed. It answers initialize, and everything else with {}. No checks: what
 * it reads comes from the gateway.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char news[] =
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";
static const char initialized[] =
	"{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{\"listChanged\":true}},"
	"\"serverInfo\":{\"name\":\"news\",\"version\":\"1\"}}";

static void on_usr1(int number)
{
	(void)number;
	if (write(STDOUT_FILENO, news, sizeof(news) - 1) < 0)
		_exit(1);
}

static void answer(const char *line)
{
	const char *id = strstr(line, "\"id\":");
	int n = id != NULL ? (int)strcspn(id + 5, ",}") : 0;

	if (n == 0)
		return;
	printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}\n", n, id + 5,
	       strstr(line, "\"initialize\"") != NULL ? initialized : "{}");
	fflush(stdout);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_usr1, .sa_flags = SA_RESTART };
	char *line = NULL;
	size_t size = 0;

	sigaction(SIGUSR1, &action, NULL);
	while (getline(&line, &size, stdin) > 0)
		answer(line);
	free(line);
	return 0;
}
