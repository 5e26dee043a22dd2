/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of all kinds, opened, kept, given up and closed: whether something listens there, and which
 * files are left. That no descriptor is left either is seen at the end. Time stands still between steps.
 */
#include "keeper/listeners.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "config/load.h"
#include "config/tree.h"
#include "io/address.h"
#include "keeper/gateway_entry.h"
#include "keeper/handover.h"
#include "obs/log.h"

#define SERVERS "servers: {a: {command: cat}}\n"
#define USUAL "mcpgated/admin.sock"

static char directory[64], file[96];
static int log_fd;
static uint64_t now_ms;

/* ---- words ---- */

/* Valid until the next call. */
static const char *in(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

/* The text with '@' replaced by the directory and '#' by the port; the caller frees it. */
static char *filled(const char *text, unsigned int port)
{
	struct buf out = { 0 };
	char *copy;

	for (; *text != '\0'; text++) {
		if (*text == '@')
			buf_append_str(&out, directory);
		else if (*text == '#')
			buf_printf(&out, "%u", port);
		else
			buf_append_char(&out, *text);
	}
	copy = mem_dup_slice(buf_slice(&out));
	buf_fini(&out);
	return copy;
}

/* What listeners_check says of the configuration that is being read. */
static struct config_problems seen, warned;
static pid_t running; /* the daemon that asks; 0: none is known */

static void check(const struct config_request *request, const struct config *config,
		  const struct tree *root, struct config_problems *problems,
		  struct config_problems *warnings)
{
	listeners_check(config, root, running, &seen, &warned);
}

static struct config *load(const char *yaml, unsigned int port)
{
	struct config_problems problems = { 0 }, warnings = { 0 };
	const struct config_request request = { .file = file, .check = check };
	char *text = filled(yaml, port);
	FILE *out = fopen(file, "w");
	struct config *config;

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(file, 0600), 0);
	config_problems_fini(&seen);
	config_problems_fini(&warned);
	memset(&seen, 0, sizeof(seen));
	memset(&warned, 0, sizeof(warned));
	config = config_load(&request, &problems, &warnings);
	if (config == NULL)
		fail_msg("%s: %s", yaml, problems.items[0]);
	config_problems_fini(&problems);
	config_problems_fini(&warnings);
	free(text);
	return config;
}

static unsigned int count_logged(const char *text)
{
	static char log[1 << 16];
	ssize_t n = pread(log_fd, log, sizeof(log) - 1, 0);
	unsigned int count = 0;

	log[n > 0 ? n : 0] = '\0';
	for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
		count++;
	return count;
}

static bool exists(const char *name)
{
	struct stat st;

	return lstat(in(name), &st) == 0;
}

static unsigned int port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

/* Somebody who listens at a free port of 127.0.0.1. */
static int listen_somewhere(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 64), 0);
	return fd;
}

static int listen_in(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", in(name));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 64), 0);
	return fd;
}

static int set_up(void **state)
{
	strcpy(directory, "/tmp/listeners.XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(file, sizeof(file), "%s/conf.yaml", directory);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	log_set(log_fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	clock_freeze(now_ms = 1000000);
	setenv("XDG_RUNTIME_DIR", directory, 1);
	unsetenv("RUNTIME_DIRECTORY");
	return 0;
}

/* Nothing is left but the configuration. */
static int tear_down(void **state)
{
	log_set_fd(STDERR_FILENO);
	close(log_fd);
	config_problems_fini(&seen);
	config_problems_fini(&warned);
	memset(&seen, 0, sizeof(seen));
	memset(&warned, 0, sizeof(warned));
	unlink(file);
	if (rmdir(directory) < 0)
		fail_msg("something is left in %s", directory);
	return 0;
}

/* ---- what could not be opened ---- */

/* Either is a part of the only one that is told; NULL: none is. */
static void expect(const char *yaml, unsigned int port, const char *problem, const char *warning)
{
	char *wanted = filled(problem != NULL ? problem : "", port);
	char *warned_of = filled(warning != NULL ? warning : "", port);
	char *text = mem_printf("%s" SERVERS, yaml);
	struct config *config = load(text, port);

	if (seen.count != (problem != NULL) || warned.count != (warning != NULL) ||
	    (seen.count > 0 && strstr(seen.items[0], wanted) == NULL) ||
	    (warned.count > 0 && strstr(warned.items[0], warned_of) == NULL))
		fail_msg("%s: %s %s", yaml, seen.count > 0 ? seen.items[0] : "-",
			 warned.count > 0 ? warned.items[0] : "-");
	config_free(&config);
	free(wanted);
	free(warned_of);
	free(text);
}

static void addresses_are_tried(void **state)
{
	static const struct {
		const char *yaml, *problem, *warning;
	} rows[] = {
		{ "listen: [{address: '127.0.0.1:0'}]\n", NULL, NULL },
		{ "listen: [{address: '127.0.0.1:0'}, {address: '127.0.0.1:#'}]\n", NULL,
		  "listen[1].address: cannot listen on 127.0.0.1:# now: Address already in use" },
		{ "listen: [{address: '127.0.0.1:#'}]\nadmin: {address: 'unix:@/other'}\n", NULL,
		  "(perhaps this daemon is already running)" },
		{ "listen: [{address: '127.0.0.1:#'}]\nadmin: {address: 'unix:@/own'}\n", NULL,
		  NULL }, /* it is this one, and has both */
		{ "listen: [{address: '192.0.2.1:0', plaintext: true}]\nauth: {mode: anonymous}\n",
		  "listen[0].address: cannot listen on 192.0.2.1:0 now: Cannot assign", NULL },
		{ "listen: [{address: '127.0.0.1:#'}]\nadmin: {address: 'off'}\n", NULL,
		  "cannot listen on" },
		{ "listen: [{address: 'unix:@/s'}]\n", NULL, NULL },
		{ "listen: [{address: 'unix:@/none/s'}]\n", NULL,
		  "cannot listen on unix:@/none/s now: cannot create a socket" },
		{ "admin: {address: 'unix:@/none/s'}\n", NULL, "admin.address: cannot listen" },
		{ "admin: {metrics: '127.0.0.1:#'}\n", NULL, "admin.metrics: cannot listen on" },
		{ "admin: {page: '127.0.0.1:#'}\n", NULL, "admin.page: cannot listen on" },
	};
	int taken = listen_somewhere(), own = listen_in("own");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect(rows[i].yaml, port_of(taken), rows[i].problem, rows[i].warning);
	close(own);
	assert_int_equal(unlink(in("own")), 0);
	/* At the usual place, too, it is this one. */
	assert_int_equal(mkdir(in("mcpgated"), 0700), 0);
	own = listen_in(USUAL);
	expect("listen: [{address: '127.0.0.1:#'}]\n", port_of(taken), NULL, NULL);
	close(own);
	close(taken);
	assert_int_equal(unlink(in(USUAL)), 0);
	assert_int_equal(rmdir(in("mcpgated")), 0);
}

/* Of a daemon that asks it is known which it is: what another one has is no matter of a moment. */
static void the_ports_of_the_daemon_that_asks_are_its_own(void **state)
{
	int taken = listen_somewhere();

	running = getpid();
	expect("listen: [{address: '127.0.0.1:#'}]\n", port_of(taken), NULL, NULL);
	running = 1;
	expect("listen: [{address: '127.0.0.1:#'}]\n", port_of(taken),
	       "listen[0].address: cannot listen on 127.0.0.1:# now: Address already in use", NULL);
	expect("admin: {metrics: '127.0.0.1:#'}\n", port_of(taken), "admin.metrics: cannot", NULL);
	expect("admin: {page: '127.0.0.1:#'}\n", port_of(taken), "admin.page: cannot", NULL);
	running = 0;
	close(taken);
}

/* A daemon of this user is running, and the port is somebody else's. */
static void the_port_of_another_program_is_told(void **state)
{
	int taken = listen_somewhere(), own = listen_in("own");
	unsigned int port = port_of(taken);
	struct config *config;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	close(taken);
	config =
		load("listen: [{address: '127.0.0.1:#'}]\nadmin: {address: 'unix:@/own'}\n" SERVERS,
		     port);
	assert_int_equal(warned.count, 1);
	assert_int_equal(seen.count, 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	config_free(&config);
	close(own);
	assert_int_equal(unlink(in("own")), 0);
}

/* ---- opened and closed ---- */

#define ALL                                                           \
	"listen: [{address: '127.0.0.1:0'}, {address: 'unix:@/s'}]\n" \
	"admin: {address: 'unix:@/admin', metrics: 'unix:@/metrics'}\n" SERVERS

static void what_is_closed_leaves_no_file(void **state)
{
	struct config *config = load(ALL, 0);
	struct error err = { ERROR_NONE, "" };
	int *fds = listeners_open(config, &(struct handover){ .fds = NULL }, &err);
	const struct linger linger = { 1, 5 };
	struct linger found;
	socklen_t size = sizeof(found);
	int on = 1;

	assert_non_null(fds);
	assert_int_equal(count_logged("listen address="), 4);
	assert_int_equal(count_logged("reach=local"), 4);
	assert_int_equal(fds[2 + LISTENER_PAGE], -1);
	assert_int_equal(address_owner(in("admin")), getpid());
	assert_int_equal(address_owner(in("s")), getpid());

	/* What a gateway may have done to them. */
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(fcntl(fds[i], F_SETFL, 0), 0);
		setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
	listeners_restore(config, fds);
	for (size_t i = 0; i < 2; i++) {
		assert_true(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
		assert_int_equal(getsockopt(fds[i], SOL_SOCKET, SO_LINGER, &found, &size), 0);
		assert_int_equal(found.l_onoff, 0);
	}
	size = sizeof(on);
	assert_int_equal(getsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
	assert_int_equal(on, 0);

	listeners_stop(config, fds);
	assert_int_equal(fds[0], -1);
	assert_int_equal(address_owner(in("s")), 0);
	assert_int_equal(address_owner(in("admin")), getpid());
	listeners_close(config, &fds);
	assert_null(fds);
	assert_false(exists("s") || exists("admin") || exists("metrics"));
	config_free(&config);
}

static void what_cannot_be_opened_closes_the_others(void **state)
{
	static const struct {
		const char *yaml, *why;
	} rows[] = {
		{ "listen: [{address: 'unix:@/s'}, {address: '127.0.0.1:#'}]\n" SERVERS,
		  "conf.yaml:1: listen[1].address: cannot listen on 127.0.0.1:#: Address " },
		{ "listen: [{address: 'unix:@/s'}]\nadmin: {address: 'unix:@/admin', metrics: "
		  "'127.0.0.1:#'}\n" SERVERS,
		  "admin.metrics: cannot listen on 127.0.0.1:#" },
	};
	int taken = listen_somewhere();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct config *config = load(rows[i].yaml, port_of(taken));
		char *why = filled(rows[i].why, port_of(taken));
		struct error err = { ERROR_NONE, "" };

		assert_null(listeners_open(config, &(struct handover){ .fds = NULL }, &err));
		if (strstr(err.text, why) == NULL)
			fail_msg("%s", err.text);
		assert_int_equal(count_logged("listen_failed address=127.0.0.1:"), i + 1);
		assert_false(exists("s") || exists("admin"));
		free(why);
		config_free(&config);
	}
	close(taken);
}

/* ---- the usual admin socket ---- */

#define PLAIN "listen: [{address: '127.0.0.1:0'}]\n" SERVERS

/* product §2: below what is this user's alone, or what the service manager has made. */
static void the_usual_place_is_made_and_goes(void **state)
{
	struct config *config = load(PLAIN, 0);
	struct error err = { ERROR_NONE, "" };
	char *service = mem_printf("%s:/other", directory);
	struct stat st;

	for (size_t i = 0; i < 3; i++) {
		const char *name = i < 2 ? USUAL : "admin.sock";
		int *fds;

		if (i == 1)
			assert_int_equal(mkdir(in("mcpgated"), 0700), 0);
		if (i == 2)
			setenv("RUNTIME_DIRECTORY", service, 1);
		fds = listeners_open(config, &(struct handover){ .fds = NULL }, &err);
		assert_non_null(fds);
		assert_int_equal(address_owner(in(name)), getpid());
		assert_int_equal(lstat(in(name), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
		assert_int_equal(listeners_do_due(), UINT64_MAX);
		assert_int_equal(count_logged("listen address="), 2 * (i + 1));
		listeners_close(config, &fds);
		assert_false(exists(name));
		assert_int_equal(exists("mcpgated"), i == 1);
		if (i == 1)
			assert_int_equal(rmdir(in("mcpgated")), 0);
	}
	free(service);
	config_free(&config);
}

/* SEC-61: a directory that others may write to is none; the daemon serves without an admin socket. */
static void other_places_are_not_used(void **state)
{
	struct config *config = load(PLAIN, 0);
	struct error err = { ERROR_NONE, "" };

	for (unsigned int i = 0; i < 5; i++) {
		int *fds;

		if (i < 2) {
			assert_int_equal(mkdir(in("mcpgated"), 0700), 0);
			assert_int_equal(chmod(in("mcpgated"), i == 0 ? 0720 : 0702), 0);
		} else if (i == 2) {
			assert_int_equal(symlink("/", in("mcpgated")), 0);
		} else if (i == 3) {
			close(open(in("mcpgated"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		} else {
			setenv("XDG_RUNTIME_DIR", "/no/such", 1);
		}
		fds = listeners_open(config, &(struct handover){ .fds = NULL }, &err);
		assert_non_null(fds);
		assert_int_equal(fds[1 + LISTENER_ADMIN], -1);
		assert_int_equal(count_logged("admin_off"), i + 1);
		assert_int_equal(count_logged("must be a directory that belongs to this user"),
				 i < 4 ? i + 1 : 4);
		listeners_close(config, &fds);
		if (i < 2)
			assert_int_equal(rmdir(in("mcpgated")), 0);
		else if (i < 4)
			assert_int_equal(unlink(in("mcpgated")), 0);
	}
	config_free(&config);
}

/* Of another user, or of a daemon that was started without any. */
static void without_a_place_there_is_no_admin_socket(void **state)
{
	struct config *config = load(PLAIN, 0);
	struct error err = { ERROR_NONE, "" };
	uid_t user = geteuid();

	for (unsigned int i = 0; i < 3; i++) {
		bool is_anothers = i == 2 && user == 0;
		int *fds;

		if (i == 0)
			setenv("XDG_RUNTIME_DIR", "no/absolute/path", 1);
		else
			unsetenv("XDG_RUNTIME_DIR");
		if (is_anothers) {
			setenv("XDG_RUNTIME_DIR", directory, 1);
			assert_int_equal(mkdir(in("mcpgated"), 0700), 0);
			assert_int_equal(chown(in("mcpgated"), 65534, 0), 0);
		} else if (user == 0) {
			assert_int_equal(seteuid(65534), 0); /* root has one */
		}
		fds = listeners_open(config, &(struct handover){ .fds = NULL }, &err);
		assert_int_equal(seteuid(user), 0);
		assert_non_null(fds);
		assert_int_equal(fds[1 + LISTENER_ADMIN], -1);
		assert_int_equal(count_logged(
					 "neither RUNTIME_DIRECTORY nor XDG_RUNTIME_DIR is set"),
				 is_anothers ? 2 : i + 1);
		assert_int_equal(count_logged("must be a directory that belongs to this user"),
				 is_anothers);
		listeners_close(config, &fds);
		if (is_anothers)
			assert_int_equal(rmdir(in("mcpgated")), 0);
	}
	config_free(&config);
}

/* Another daemon, which has the usual place; a byte from it says that it does. */
static pid_t start_other(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test may fail */
		listen_in(USUAL);
		(void)!write(ends[1], "1", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static void end_other(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* How long it may be left alone; 0: for ever. */
static uint64_t turn(void)
{
	now_ms += 250;
	clock_freeze(now_ms);
	return listeners_do_due() == UINT64_MAX ? 0 : listeners_do_due() - now_ms;
}

/* product §2: beside another daemon's, and in its place once it has ended and nobody has followed it. */
static void the_usual_place_is_taken_over(void **state)
{
	struct config *config = load(PLAIN, 0);
	struct error err = { ERROR_NONE, "" };
	char *own = mem_printf("mcpgated/admin-%d.sock", (int)getpid());
	pid_t other, follower;
	int *fds;

	assert_int_equal(mkdir(in("mcpgated"), 0700), 0);
	other = start_other();
	fds = listeners_open(config, &(struct handover){ .fds = NULL }, &err);
	assert_non_null(fds);
	assert_int_equal(count_logged("admin_beside"), 1);
	assert_int_equal(address_owner(in(own)), getpid());
	assert_int_equal(listeners_do_due(), now_ms + 250);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(turn(), 250);
	assert_int_equal(address_owner(in(USUAL)), other);
	end_other(other);
	for (size_t i = 0; i < 7; i++)
		turn();
	assert_int_equal(unlink(in(USUAL)), 0);
	follower = start_other(); /* it counts anew from its end */
	turn();
	end_other(follower);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(turn(), 250);
	assert_true(exists(own));
	assert_int_equal(turn(), 0);
	assert_false(exists(own));
	assert_int_equal(address_owner(in(USUAL)), getpid());
	assert_int_equal(count_logged("reach=local"), 2);
	listeners_close(config, &fds);
	assert_false(exists(USUAL));
	assert_int_equal(rmdir(in("mcpgated")), 0);
	free(own);
	config_free(&config);
}

/* For a minute. */
static void the_usual_place_may_stay_anothers(void **state)
{
	struct config *config = load(PLAIN, 0);
	struct error err = { ERROR_NONE, "" };
	pid_t other;
	int *fds;

	assert_int_equal(mkdir(in("mcpgated"), 0700), 0);
	other = start_other();
	fds = listeners_open(config, &(struct handover){ .fds = NULL }, &err);
	for (size_t i = 0; i < 60000 / 250 - 1; i++)
		assert_int_equal(turn(), 250);
	assert_int_equal(turn(), 0);
	listeners_close(config, &fds);
	assert_int_equal(address_owner(in(USUAL)), other);
	end_other(other);
	assert_int_equal(unlink(in(USUAL)), 0);
	assert_int_equal(rmdir(in("mcpgated")), 0);
	config_free(&config);
}

/* ---- another program ---- */

/* The line of that name: its descriptor, 0: it has none. */
static int given(const struct handover *to, const char *word, const char *value)
{
	char *wanted = filled(value, 0);
	const char *line;
	size_t at = 0;
	int fd = 0, n = 0, found = -1;

	while (found < 0 && (line = handover_next(to, word, &at)) != NULL)
		if (strcmp(line, wanted) == 0)
			found = 0;
		else if (sscanf(line, "%d %n", &fd, &n) == 1 && strcmp(line + n, wanted) == 0)
			found = fd;
	free(wanted);
	return found;
}

static void the_next_program_gets_what_is_open(void **state)
{
	struct config *config =
		load("listen: [{address: '127.0.0.1:0'}, {address: 'unix:@/s'}]\nadmin: {metrics: "
		     "'unix:@/metrics'}\n" SERVERS,
		     0);
	struct error err = { ERROR_NONE, "" };

	for (size_t i = 0; i < 2; i++) {
		struct handover to = { .fds = NULL };
		pid_t other = 0;
		int *fds;

		if (i == 1) {
			assert_int_equal(mkdir(in("mcpgated"), 0700), 0);
			other = start_other();
		}
		fds = listeners_open(config, &(struct handover){ .fds = NULL }, &err);
		assert_non_null(fds);
		listeners_hand_over(config, fds, &to);
		assert_int_equal(given(&to, "listener", "127.0.0.1:0"), fds[0]);
		assert_int_equal(given(&to, "listener", "unix:@/s"), fds[1]);
		assert_int_equal(given(&to, "listener", "unix:@/metrics"),
				 fds[2 + LISTENER_METRICS]);
		/* Beside another daemon's it is made anew. */
		assert_int_equal(given(&to, "listener", "auto"),
				 i == 0 ? fds[2 + LISTENER_ADMIN] : -1);
		assert_int_equal(given(&to, "made", "@/mcpgated"), i == 0 ? 0 : -1);
		assert_int_equal(to.fd_count, i == 0 ? 4 : 3);
		to.fd_count = 0;
		handover_fini(&to);
		listeners_close(config, &fds);
		if (i == 1) {
			end_other(other);
			assert_int_equal(unlink(in(USUAL)), 0);
			assert_int_equal(rmdir(in("mcpgated")), 0);
		}
	}
	config_free(&config);
}

#define TAKEN "listen: [{address: 'unix:@/s'}, {address: '127.0.0.1:#'}]\n"

/* As it is; what is not configured any more goes once the gateway is ready, and what was made is removed at the end. */
static void what_the_program_before_had_is_taken(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		int tcp = listen_somewhere(), kept = listen_in("s"), gone = listen_in("gone");
		unsigned int port = port_of(tcp);
		struct config *config = load(TAKEN SERVERS, port);
		struct handover from = { .fds = NULL };
		struct error err = { ERROR_NONE, "" };
		int *fds;

		if (i == 0) /* else somebody has removed it meanwhile */
			assert_int_equal(mkdir(in("mcpgated"), 0700), 0);
		handover_write(&from, "listener nonsense");
		handover_write(&from, "listener 4000 unix:%s", in("s"));
		handover_write(&from, "listener %d 127.0.0.1:%u", handover_give(&from, tcp), port);
		handover_write(&from, "listener %d unix:%s", handover_give(&from, gone),
			       in("gone"));
		handover_write(&from, "listener %d unix:%s", handover_give(&from, kept), in("s"));
		handover_write(&from, "made %s", in("mcpgated"));
		fds = listeners_open(config, &from, &err);
		assert_non_null(fds);
		assert_int_equal(fds[0], kept);
		assert_int_equal(fds[1], tcp);
		assert_int_equal(count_logged("listen address="), i + 1); /* the admin socket */
		assert_int_equal(address_owner(in("gone")), getpid());
		listeners_drop(&from);
		assert_false(exists("gone"));
		assert_int_equal(address_owner(in("s")), getpid());
		assert_int_equal(count_logged("listen_end address="), i + 1);
		handover_fini(&from);
		listeners_close(config, &fds);
		assert_false(exists("mcpgated"));
		config_free(&config);
	}
}

/* The program before goes on with them. */
static void what_cannot_be_opened_leaves_what_was_taken(void **state)
{
	int tcp = listen_somewhere(), kept = listen_in("s");
	struct config *config = load(TAKEN "admin: {address: 'off'}\n" SERVERS, port_of(tcp));
	struct handover from = { .fds = NULL };
	struct error err = { ERROR_NONE, "" };

	handover_write(&from, "listener %d unix:%s", handover_give(&from, kept), in("s"));
	assert_null(listeners_open(config, &from, &err));
	handover_fini(&from);
	assert_int_equal(address_owner(in("s")), getpid());
	close(tcp);
	close(kept);
	assert_int_equal(unlink(in("s")), 0);
	config_free(&config);
}

/* ---- those of the next configuration ---- */

#define METRICS "admin: {address: 'off', metrics: 'unix:@/metrics'}\n"
#define NOW "listen: [{address: '127.0.0.1:#'}, {address: 'unix:@/old'}]\n" METRICS
#define NEXT "listen: [{address: 'unix:@/new'}, {address: '127.0.0.1:#'}]\n" METRICS

static void the_same_sockets_are_kept(void **state)
{
	int taken = listen_somewhere();
	unsigned int port = port_of(taken);
	struct config *now = load(NOW SERVERS, port), *next = load(NEXT SERVERS, port);
	struct next_listeners listeners;
	struct error err = { ERROR_NONE, "" };
	int *fds, first, metrics, gateways;

	close(taken);
	fds = listeners_open(now, &(struct handover){ .fds = NULL }, &err);
	assert_non_null(fds);
	first = fds[0];
	metrics = fds[2 + LISTENER_METRICS];
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(next_listeners_open(&listeners, now, next, &err), 0);
		assert_int_equal(listeners.fds[1], -1);
		assert_int_equal(address_owner(in("new")), getpid());
		if (i == 0)
			next_listeners_forget(&listeners);
		assert_int_equal(exists("new"), i == 1);
	}
	gateways = dup(fds[1]); /* it has it open as well, for a while */
	next_listeners_use(&listeners, now, &fds);
	close(gateways);
	assert_int_equal(fds[1], first);
	assert_int_equal(fds[2 + LISTENER_METRICS], metrics);
	assert_int_equal(address_owner(in("metrics")), getpid());
	assert_int_equal(port_of(first), port);
	assert_false(exists("old"));
	assert_int_equal(count_logged("listen_end address="), 1);
	listeners_close(next, &fds);
	config_free(&now);
	config_free(&next);
}

/* Of what is in the way this daemon's own is named, if it is that. */
static void what_this_daemon_has_is_in_the_way(void **state)
{
	static const struct {
		const char *address, *why;
	} rows[] = {
		{ "0.0.0.0:#",
		  "conf.yaml:1: listen[1].address: cannot listen on 0.0.0.0:# while this daemon "
		  "listens on 127.0.0.1:#: needs a restart" },
		{ "192.0.2.1:#", "listen[1].address: cannot listen on 192.0.2.1:#: Cannot assign" },
		{ "unix:@/own", "listen[1].address: cannot listen on unix:@/own: " },
	};
	int taken = listen_somewhere(), own = listen_in("own");
	unsigned int port = port_of(taken);
	struct config *now = load("listen: [{address: 'unix:@/one'}, {address: 'unix:@/two'}, "
				  "{address: '127.0.0.1:#'}]\nadmin: {address: 'off'}\n" SERVERS,
				  port);
	struct error err = { ERROR_NONE, "" };
	int *fds;

	close(taken);
	fds = listeners_open(now, &(struct handover){ .fds = NULL }, &err);
	assert_non_null(fds);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *yaml =
			mem_printf("listen: [{address: 'unix:@/new'}, {address: '%s', plaintext: "
				   "true}]\nauth: {mode: anonymous}\nadmin: {address: "
				   "'off'}\n" SERVERS,
				   rows[i].address);
		struct config *next = load(yaml, port);
		char *why = filled(rows[i].why, port);
		struct next_listeners listeners;

		assert_int_equal(next_listeners_open(&listeners, now, next, &err), -1);
		if (strstr(err.text, why) == NULL || (i > 0 && strstr(err.text, "restart") != NULL))
			fail_msg("%s", err.text);
		assert_false(exists("new"));
		free(why);
		free(yaml);
		config_free(&next);
	}
	close(own);
	assert_int_equal(unlink(in("own")), 0);
	listeners_close(now, &fds);
	config_free(&now);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
	TEST(addresses_are_tried),
	TEST(the_ports_of_the_daemon_that_asks_are_its_own),
	TEST(the_port_of_another_program_is_told),
	TEST(what_is_closed_leaves_no_file),
	TEST(what_cannot_be_opened_closes_the_others),
	TEST(the_usual_place_is_made_and_goes),
	TEST(other_places_are_not_used),
	TEST(without_a_place_there_is_no_admin_socket),
	TEST(the_usual_place_is_taken_over),
	TEST(the_usual_place_may_stay_anothers),
	TEST(the_next_program_gets_what_is_open),
	TEST(what_the_program_before_had_is_taken),
	TEST(what_cannot_be_opened_leaves_what_was_taken),
	TEST(the_same_sockets_are_kept),
	TEST(what_this_daemon_has_is_in_the_way),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
