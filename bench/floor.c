/*
 * floor.c - the least relay: what any gateway to a stdio server must do for a call, and nothing else.  One thread,
 * epoll, no library.  Every figure of a gateway is read against it.
 *
 *   floor --port PORT [--children N] -- COMMAND [ARG...]
 *
 * Without --children each session has a child of its own, which initialize starts and DELETE ends; with it, N children
 * serve all sessions in turn.  A call costs a gateway's four system calls: the request is read from the socket, its
 * body is written to a child as a line, the child's line is read, and it is written to the socket behind a head that
 * never changes but for the length.  What goes to a shared child in one turn of the loop goes in one write, and what it
 * answers comes in one read.
 *
 * It trusts everybody: it looks for what load.c writes and parses nothing, knows no ids (answers are taken to come in
 * the order of the requests), refuses nothing, ends nothing by itself, and dies where something is not as expected.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS 512
#define READ_BYTES (64 * 1024)
#define HEAD_ROOM 160

extern char **environ;

typedef struct { char *p; size_t len, cap; } buf;

enum kind { LISTENER, CONNECTION, CHILD };
typedef struct { enum kind kind; int fd; } source;

typedef struct child {
	source out;                  /* its stdout */
	int in;                      /* its stdin; -1: it is gone */
	struct conn **waiting;       /* who gets its next lines, a ring */
	size_t first, count, size;   /* size is a power of two */
	buf lines;                   /* for its stdin, of this turn */
	buf part;                    /* a line that is not whole yet */
	int is_queued;
	long number;                 /* the id of its session */
} child;

typedef struct conn {
	source from;
	child *child;                /* of the call that runs */
	buf in;
} conn;

static int ep, shared;
static char **command;
static child **children;
static size_t child_count, next_child;
static child **queued;           /* those with lines to be written in this turn */
static size_t queued_count;

static void die(const char *what) { perror(what); exit(1); }
static void fail(const char *what) { fprintf(stderr, "floor: %s\n", what); exit(1); }

static char *reserve(buf *b, size_t n)
{
	if (b->len + n > b->cap) {
		size_t c = b->cap ? b->cap : 256;
		while (c < b->len + n) c *= 2;
		if (!(b->p = realloc(b->p, c))) die("realloc");
		b->cap = c;
	}
	return b->p + b->len;
}
static void put(buf *b, const char *p, size_t n) { memcpy(reserve(b, n), p, n); b->len += n; }

static void watch(source *s)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
	if (epoll_ctl(ep, EPOLL_CTL_ADD, s->fd, &e)) die("epoll_ctl");
}

/* ---- children ---- */

static child *start_child(void)
{
	child *c = calloc(1, sizeof *c), **at;
	int in[2], out[2];
	posix_spawn_file_actions_t files;
	pid_t pid;
	if (!c || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) die("pipe2");
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	if ((errno = posix_spawnp(&pid, command[0], &files, NULL, command, environ))) die(command[0]);
	posix_spawn_file_actions_destroy(&files);
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = (source){CHILD, out[0]};
	c->size = 4;
	c->waiting = calloc(c->size, sizeof *c->waiting);
	watch(&c->out);
	if (!(at = realloc(children, (child_count + 1) * sizeof *at))) die("realloc");
	children = at;
	if (!(at = realloc(queued, (child_count + 1) * sizeof *at))) die("realloc");
	queued = at;
	c->number = (long)child_count;
	children[child_count++] = c;
	return c;
}

static void end_child(child *c)
{
	if (c->in < 0) return;
	close(c->in);
	close(c->out.fd);
	free(c->waiting);
	free(c->lines.p);
	free(c->part.p);
	*c = (child){.in = -1, .out = {CHILD, -1}};
}

static void expect(child *c, conn *who)
{
	if (c->count == c->size) {
		conn **ring = calloc(c->size * 2, sizeof *ring);
		size_t i;
		if (!ring) die("calloc");
		for (i = 0; i < c->count; i++) ring[i] = c->waiting[(c->first + i) & (c->size - 1)];
		free(c->waiting);
		c->waiting = ring;
		c->first = 0;
		c->size *= 2;
	}
	c->waiting[(c->first + c->count++) & (c->size - 1)] = who;
}

/* Its stdin blocks: echo-server goes on reading whatever becomes of its output. */
static void write_lines(child *c)
{
	size_t at = 0;
	while (at < c->lines.len) {
		ssize_t n = write(c->in, c->lines.p + at, c->lines.len - at);
		if (n < 0) die("write to a child");
		at += (size_t)n;
	}
	c->lines.len = 0;
	c->is_queued = 0;
}

/* ---- answers ---- */

static size_t put_head(char *p, size_t length, long session)
{
	static const char before[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
	char digits[24];
	size_t n = sizeof before - 1, i = sizeof digits;
	memcpy(p, before, n);
	do digits[--i] = (char)('0' + length % 10); while (length /= 10);
	memcpy(p + n, digits + i, sizeof digits - i);
	n += sizeof digits - i;
	if (session >= 0) n += (size_t)sprintf(p + n, "\r\nMcp-Session-Id: %ld", session);
	memcpy(p + n, "\r\n\r\n", 4);
	return n + 4;
}

static void send_all(conn *c, const char *p, size_t n)
{
	if (write(c->from.fd, p, n) != (ssize_t)n) fail("an answer did not go out in one piece");
}

static void answer(conn *c, const char *line, size_t n, child *from)
{
	static buf out;
	long session = memmem(line, n < 400 ? n : 400, "\"protocolVersion\"", 17) ? from->number : -1;
	out.len = 0;
	reserve(&out, n + HEAD_ROOM);
	out.len = put_head(out.p, n, session);
	put(&out, line, n);
	send_all(c, out.p, out.len);
}

static void take_lines(child *c)
{
	static char bytes[READ_BYTES];
	ssize_t n;
	char *p = bytes, *end, *nl;
	if (c->in < 0) return;       /* ended in this turn */
	if ((n = read(c->out.fd, bytes, sizeof bytes)) <= 0) fail("a child has ended");
	end = bytes + n;
	while (p < end && (nl = memchr(p, '\n', (size_t)(end - p)))) {
		conn *to = c->waiting[c->first];
		if (c->count-- == 0) fail("a line that nobody waits for");
		c->first = (c->first + 1) & (c->size - 1);
		if (c->part.len) {
			put(&c->part, p, (size_t)(nl - p));
			if (to) answer(to, c->part.p, c->part.len, c);
			c->part.len = 0;
		} else if (to) {
			answer(to, p, (size_t)(nl - p), c);
		}
		if (to) to->child = NULL;
		p = nl + 1;
	}
	if (p < end) put(&c->part, p, (size_t)(end - p));
}

/* ---- requests ---- */

static const char *field(const char *head, size_t n, const char *name)
{
	const char *at = memmem(head, n, name, strlen(name));
	return at ? at + strlen(name) : NULL;
}

static void take_request(conn *c, const char *head, size_t head_n, const char *body, size_t body_n)
{
	const char *id = field(head, head_n, "\r\nMcp-Session-Id: ");
	child *to;
	if (shared) to = children[next_child++ % child_count];
	else if (!id) to = start_child();
	else to = children[strtoul(id, NULL, 10)];
	if (head[0] == 'D') {
		if (!shared) end_child(to);
		send_all(c, "HTTP/1.1 204 No Content\r\n\r\n", 27);
		return;
	}
	put(&to->lines, body, body_n);
	put(&to->lines, "\n", 1);
	if (!to->is_queued) {
		to->is_queued = 1;
		queued[queued_count++] = to;
	}
	if (memmem(body, body_n < 80 ? body_n : 80, "\"notifications/", 15)) {
		send_all(c, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 44);
		return;
	}
	expect(to, c);
	c->child = to;
}

static void close_conn(conn *c)
{
	size_t i;
	if (c->child)
		for (i = 0; i < c->child->count; i++)
			if (c->child->waiting[(c->child->first + i) & (c->child->size - 1)] == c)
				c->child->waiting[(c->child->first + i) & (c->child->size - 1)] = NULL;
	close(c->from.fd);
	free(c->in.p);
	free(c);
}

/* Where all of a request is there, returns its length. */
static size_t take_one(conn *c, const char *p, size_t n)
{
	const char *end = memmem(p, n, "\r\n\r\n", 4), *length;
	size_t head_n, body_n;
	if (!end) return 0;
	head_n = (size_t)(end - p) + 4;
	length = field(p, head_n, "\r\nContent-Length: ");
	body_n = length ? strtoul(length, NULL, 10) : 0;
	if (n < head_n + body_n) return 0;
	take_request(c, p, head_n, p + head_n, body_n);
	return head_n + body_n;
}

static void take_bytes(conn *c)
{
	static char bytes[READ_BYTES];
	ssize_t got = read(c->from.fd, bytes, sizeof bytes);
	const char *p = bytes;
	size_t n = got > 0 ? (size_t)got : 0, used;
	if (got <= 0) {
		close_conn(c);
		return;
	}
	if (c->in.len) {
		put(&c->in, bytes, n);
		p = c->in.p;
		n = c->in.len;
	}
	while (n && (used = take_one(c, p, n))) {
		p += used;
		n -= used;
	}
	if (c->in.len) {
		memmove(c->in.p, p, n);
		c->in.len = n;
	} else if (n) {
		put(&c->in, p, n);
	}
}

static void take_connection(source *listener)
{
	int one = 1, fd;
	conn *c;
	while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		if (!(c = calloc(1, sizeof *c))) die("calloc");
		c->from = (source){CONNECTION, fd};
		watch(&c->from);
	}
	if (errno != EAGAIN && errno != ECONNABORTED) die("accept4");
}

static source listen_on(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one)) die("socket");
	if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4096)) die("listen");
	return (source){LISTENER, fd};
}

static void stop(int number) { (void)number; _exit(0); }
/* Waited for, so that what they took is counted. */
static void collect(int number)
{
	int saved = errno;
	(void)number;
	while (waitpid(-1, NULL, WNOHANG) > 0) {}
	errno = saved;
}

int main(int argc, char **argv)
{
	static const struct option o[] = {{"port", 1, 0, 'p'}, {"children", 1, 0, 'c'}, {0, 0, 0, 0}};
	struct epoll_event events[EVENTS];
	struct rlimit files;
	source listener;
	int ch, port = 0, i, n;
	size_t k;
	while ((ch = getopt_long(argc, argv, "", o, NULL)) != -1)
		switch (ch) {
		case 'p': port = atoi(optarg); break;
		case 'c': shared = atoi(optarg); break;
		default: return 2;
		}
	command = argv + optind;
	if (!port || !*command) {
		fputs("usage: floor --port PORT [--children N] -- COMMAND [ARG...]\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, collect);
	signal(SIGTERM, stop);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if ((ep = epoll_create1(EPOLL_CLOEXEC)) < 0) die("epoll_create1");
	for (i = 0; i < shared; i++) start_child();
	listener = listen_on(port);
	watch(&listener);
	for (;;) {
		if ((n = epoll_wait(ep, events, EVENTS, -1)) < 0 && errno != EINTR) die("epoll_wait");
		for (i = 0; i < n; i++) {
			source *s = events[i].data.ptr;
			if (s->kind == CONNECTION) take_bytes((conn *)s);
			else if (s->kind == CHILD) take_lines((child *)s);
			else take_connection(s);
		}
		for (k = 0; k < queued_count; k++)
			if (queued[k]->is_queued) write_lines(queued[k]);
		queued_count = 0;
	}
}
