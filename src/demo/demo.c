/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgated-demo: a small MCP server on standard input and output, to try clients and gateways
 * with. Here are the options and the loop: lines in, timers. One line is one message; the end of
 * the input is the end of the program.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "demo/dispatch.h"
#include "demo/job.h"
#include "demo/server.h"
#include "mcp/level.h"

#define READ_BYTES 65536
#define LINE_MAX_BYTES (64u * 1024 * 1024)

static const char usage[] =
	"Usage: mcpgated-demo\n"
	"A small MCP server (revisions 2024-11-05 to 2025-11-25) on standard input and output.\n"
	"\n"
	"  -h, --help     show this and exit\n"
	"  -V, --version  show the version and exit\n"
	"\n"
	"Try it behind the gateway:  mcpgated -- mcpgated-demo\n";

/* Returns 1 to go on, 0 at the end of the input, -1 after a failure that it reported. */
static int read_input(struct server *server, struct buf *in)
{
	size_t old = in->len; /* so many bytes are known to hold no line feed */
	size_t begin = 0;
	ssize_t got = read(STDIN_FILENO, buf_reserve(in, READ_BYTES), READ_BYTES);
	char *feed;

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 1;
	if (got < 0) {
		fprintf(stderr, "mcpgated-demo: cannot read standard input: %s\n", strerror(errno));
		return -1;
	}
	if (got == 0) {
		dispatch_line(server, buf_slice(in)); /* a last line may lack its line feed */
		return 0;
	}
	in->len += (size_t)got;
	while ((feed = memchr(in->data + old, '\n', in->len - old)) != NULL) {
		dispatch_line(server, slice_between(in->data + begin, feed));
		begin = old = (size_t)(feed - in->data) + 1;
	}
	buf_consume(in, begin);
	if (in->len <= LINE_MAX_BYTES)
		return 1;
	fprintf(stderr, "mcpgated-demo: a line of more than %u bytes\n", LINE_MAX_BYTES);
	return -1;
}

/* Returns the exit status. */
static int serve(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	struct server server = { .log_level = level_find(SLICE_LIT("info")) };
	struct buf in = { .len = 0 };
	int more = 1;

	CHECK(server.log_level >= 0);
	list_init(&server.jobs);
	while (more > 0) {
		int ready;

		clock_update();
		ready = poll(&input, 1, job_run_due(&server));
		clock_update();
		if (ready > 0)
			more = read_input(&server, &in);
	}
	job_free_all(&server);
	CHECK(server.job_count == 0);
	json_decref(server.client);
	buf_fini(&in);
	return more == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};

	switch (getopt_long(argc, argv, "hV", options, NULL)) {
	case 'h':
		fputs(usage, stdout);
		return 0;
	case 'V':
		puts("mcpgated-demo " PACKAGE_VERSION);
		return 0;
	case -1:
		break;
	default:
		fputs("Try mcpgated-demo --help.\n", stderr);
		return 2;
	}
	if (optind < argc) {
		fprintf(stderr, "mcpgated-demo: takes no arguments, but was given %s\n",
			argv[optind]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN); /* a reader that is gone is a failed write */
	return serve();
}
