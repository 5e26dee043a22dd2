/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reload on the keeper's side, with the parts that it changes and a gateway that is the other end of a socket: the tests
 * say what it says, and when. Time stands still but where a test lets it pass.
 */
#include "keeper/reload.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "config/forms.h"
#include "io/address.h"
#include "keeper/gateway_entry.h"
#include "keeper/handover.h"
#include "keeper/records.h"
#include "keeper/programs.h"
#include "obs/log.h"

#define TWO "servers: {a: {command: cat}, b: {command: cat}}\n"
#define ONE "servers: {a: {command: cat}}\n"
#define BAD "servers: {a: {command: cat, nonsense: 1}}\n"

static char directory[64], file[96];
static struct config_request request = { .file = file };
static struct server_slots slots;
static struct launch launch;
static struct children children;
static struct reaper reaper = { .fd = -1 };
static struct cgroups cgroups = { .fd = -1 };
static struct text_stores text_stores;
static struct helper_process fetcher;
static struct certificates certificates;
static struct audit_writer audit;
static struct announcement announcement;
static struct notify notify = { .fd = -1 };
static int log_fd, gateway_config;
static int *listeners; /* none is a socket but where a test says so */
static struct reload reload;
static int ends[2]; /* the keeper's, the gateway's */
static pid_t gateway;
static uint64_t now_ms;

/* ---- the keeper ---- */

/* The text with '@' replaced by the directory; valid until the next call. */
static const char *filled(const char *text)
{
	static char out[1024];
	size_t n = 0;

	out[0] = '\0';
	for (; *text != '\0'; text++)
		n += (size_t)snprintf(out + n, sizeof(out) - n, *text == '@' ? "%s" : "%.1s",
				      *text == '@' ? directory : text);
	assert_true(n < sizeof(out));
	return out;
}

static void put(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

static const char *text_of(int fd)
{
	static char text[1 << 16];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static const char *logged(void)
{
	return text_of(log_fd);
}

static size_t count_logged(const char *text)
{
	size_t count = 0;

	for (const char *p = logged(); (p = strstr(p, text)) != NULL; p++)
		count++;
	return count;
}

/* As the keeper does in each turn. */
static uint64_t turn(void)
{
	uint64_t next = reload_do_due(&reload, ends[0], gateway);

	if (ends[0] >= 0) {
		reload_tell(&reload, ends[0]);
		certificates_tell(&certificates, ends[0]);
	}
	return next;
}

static uint64_t pass(uint64_t ms)
{
	clock_freeze(now_ms += ms);
	return turn();
}

/* A process that only can be killed, and a socket. */
static void start_gateway(void)
{
	struct error err;

	assert_int_equal(ipc_pair(ends, &err), 0);
	gateway = fork();
	while (gateway == 0)
		pause();
	children_set_gateway(&children, ends[0]);
	certificates_set_gateway(&certificates);
	helper_process_set_gateway(&fetcher, ends[0]);
	server_slots_release_all(&slots);
}

static void serve(void)
{
	certificates_on_ready(&certificates);
	reload_on_gateway_ready(&reload);
	turn();
}

/* As the keeper does when it is told of the end. */
static void end_gateway(void)
{
	kill(gateway, SIGKILL);
	assert_int_equal(waitpid(gateway, NULL, 0), gateway);
	gateway = 0;
	ipc_close(ends[1]);
	ipc_close(ends[0]);
	ends[0] = ends[1] = -1;
	children_set_gateway(&children, -1);
	helper_process_set_gateway(&fetcher, -1);
	reload_on_gateway_exit(&reload);
}

static bool is_killed(void)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)gateway, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == gateway;
}

static void wait_until_killed(void)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)gateway, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, SIGKILL);
}

static void begin_with(const char *text)
{
	struct config_problems problems = { 0 }, warnings = { 0 };
	struct config *config;
	struct error err;

	put(file, text);
	config = config_load(&request, &problems, &warnings);
	if (config == NULL)
		fail_msg("refused: %s", problems.items[0]);
	config_problems_fini(&warnings);
	clock_freeze(now_ms = 1000000);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	log_set(log_fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	server_slots_init(&slots, &server_slots_keeper);
	server_slots_begin(&slots, config);
	assert_int_equal(launch_init(&launch, &slots.table, SERVERS_MAX, &err), 0);
	children_init(&children, &slots, &launch, &reaper, &cgroups);
	assert_int_equal(text_stores_init(&text_stores, config, &(struct handover){ .fds = NULL },
					  &err),
			 0);
	assert_int_equal(helper_process_init(&fetcher, IPC_HELPER_FETCHER, config, NULL, &err), 0);
	assert_int_equal(certificates_init(&certificates, config, NULL, &err), 0);
	assert_int_equal(audit_writer_open(&audit, NULL, &err), 0);
	announcement_init(&announcement, config);
	listeners = mem_alloc((config->listen_count + LISTENERS_MORE) * sizeof(*listeners));
	for (size_t i = 0; i < config->listen_count + LISTENERS_MORE; i++)
		listeners[i] = -1;
	gateway_config =
		memory_file_printed("configuration", config_print_for_gateway, config, &err);
	assert_true(gateway_config >= 0);
	reload_init(&reload, &(struct reload_parts){ .request = &request,
						     .slots = &slots,
						     .launch = &launch,
						     .children = &children,
						     .cgroups = &cgroups,
						     .text_stores = &text_stores,
						     .fetcher = &fetcher,
						     .certificates = &certificates,
						     .audit = &audit,
						     .announcement = &announcement,
						     .notify = &notify,
						     .listeners = &listeners,
						     .log_fd = &log_fd,
						     .gateway_config = &gateway_config });
	start_gateway();
	serve();
}

static int setup(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/mcpgated-reload-XXXXXX");
	if (mkdtemp(directory) == NULL)
		return -1;
	snprintf(file, sizeof(file), "%s/file", directory);
	return setenv("STATE_DIRECTORY", directory, 1);
}

static int teardown(void **state)
{
	char *command = mem_printf("rm -r '%s'", directory);
	struct config *config;
	int result;

	(void)state;
	if (gateway > 0)
		end_gateway();
	assert_null(reload.next); /* it went with the gateway that judged it */
	buf_fini(&reload.report);
	file_close(&reload.report_file);
	free(listeners);
	announcement_fini(&announcement);
	certificates_fini(&certificates);
	helper_process_fini(&fetcher);
	text_stores_fini(&text_stores);
	map_fini(&children.by_id);
	map_fini(&children.by_pid);
	launch_fini(&launch);
	config = server_slots_fini(&slots);
	config_free(&config);
	close(gateway_config);
	audit_writer_close(&audit);
	log_set_fd(STDERR_FILENO);
	log_file_close(&log_fd);
	result = system(command);
	free(command);
	return result;
}

/* The one process of a server that there is; the signal that has ended it. */
static int reap_child(void)
{
	siginfo_t info;
	int status;

	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
	assert_true(children_before_reap(&children, info.si_pid));
	assert_int_equal(waitpid(info.si_pid, &status, 0), info.si_pid);
	children_on_reaped(&children, info.si_pid, status);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* ---- the gateway ---- */

static bool hears_nothing(void)
{
	struct ipc_message message;
	struct error err;

	return ipc_recv(ends[1], &message, &err) == 0;
}

/* The next message; descriptors are closed but for the first. */
static struct ipc_message hear(enum ipc_type type, int *fd_r)
{
	struct ipc_message message = { .type = 0 };
	struct error err;

	assert_int_equal(ipc_recv(ends[1], &message, &err), 1);
	assert_int_equal(message.type, type);
	for (size_t i = fd_r != NULL; i < message.fd_count; i++)
		close(message.fds[i]);
	if (fd_r != NULL)
		*fd_r = message.fd_count > 0 ? message.fds[0] : -1;
	return message;
}

/* Takes one that is of no interest. */
static bool ipc_recv_any(void)
{
	struct ipc_message message;
	struct error err;
	bool is_there = ipc_recv(ends[1], &message, &err) == 1;

	for (size_t i = 0; is_there && i < message.fd_count; i++)
		close(message.fds[i]);
	return is_there;
}

/* Another configuration comes, with so many servers. */
static struct ipc_message hear_config(size_t servers)
{
	static char text[1 << 16];
	struct ipc_message message;
	struct config *config;
	struct error err;
	ssize_t n;
	int fd;

	message = hear(IPC_CONFIG, &fd);
	n = pread(fd, text, sizeof(text), 0);
	close(fd);
	config = config_read_checked(slice_of(text, (size_t)n), &err);
	assert_non_null(config);
	assert_int_equal(config->server_count, servers);
	config_free(&config);
	return message;
}

static void judge(bool is_used)
{
	reload_on_verdict(&reload, is_used, ends[0]);
	turn();
}

/* What has come of the orders up to this one. */
static const char *hear_report(uint64_t order, bool is_used)
{
	static char text[4096];
	struct ipc_message message;
	ssize_t n;
	int fd;

	message = hear(IPC_RELOADED, &fd);
	assert_int_equal(message.reloaded.order, order);
	assert_int_equal(message.reloaded.is_used, is_used);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
	return text;
}

static void order(uint64_t number)
{
	reload_on_order(&reload, number);
	turn();
	turn(); /* what was begun is told */
}

/* The gateway has no room for anything until it reads. */
static void fill_socket(void)
{
	const struct ipc_message ping = { .type = IPC_PING };

	while (ipc_send(ends[0], &ping, NULL) == 0)
		;
}

static size_t servers_in_use(void)
{
	return server_slots_config(&slots)->server_count;
}

/* ---- the tests ---- */

static void what_is_judged_good_is_used(void **state)
{
	begin_with(ONE);
	put(file, TWO);
	order(1);
	hear_config(2);
	assert_int_equal(servers_in_use(), 1);
	assert_true(hears_nothing());
	judge(true);
	assert_int_equal(servers_in_use(), 2);
	assert_string_equal(hear_report(1, true), "added b\n");
	assert_int_equal(reload.state, RELOAD_IDLE);
	put(file, ONE);
	order(2);
	hear_config(1);
	judge(true);
	assert_string_equal(hear_report(2, true), "removed b\n");
	/* The next gateway gets it, too. */
	assert_true(lseek(gateway_config, 0, SEEK_END) > 0);
	assert_int_equal(servers_in_use(), 1);
}

/* What is not enabled is as if it were not there. */
static void each_change_of_a_server_is_told(void **state)
{
	static const struct {
		const char *yaml, *report;
	} rows[] = {
		{ "servers: {b: {command: cat}}\n", "removed a\n" },
		{ "servers: {b: {command: cat}, c: {command: cat, enabled: false}}\n", "" },
		{ "servers: {b: {command: cat, args: [x]}, c: {command: cat}}\n",
		  "changed b\nadded c\n" },
		{ "servers: {c: {command: cat, tools: {deny: [x]}}, b: {command: cat, args: [x], "
		  "enabled: false}}\n",
		  "rules c\nremoved b\n" },
		{ "servers: {c: {command: cat, tools: {deny: [x]}}}\n", "" },
		{ "servers: {d: {command: cat}, c: {command: cat, tools: {deny: [x]}}}\n",
		  "added d\n" },
	};

	begin_with(TWO);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put(file, rows[i].yaml);
		order(i + 1);
		while (ipc_recv_any())
			;
		judge(true);
		assert_string_equal(hear_report(i + 1, true), rows[i].report);
	}
	assert_int_equal(count_logged("server_reloaded"), 6);
	assert_int_equal(count_logged("server_reloaded server=c is=rules"), 1);
}

/* Once it is in use: what the log says from then on, and what is said of new servers. */
static void the_next_configuration_is_that_of_all_parts(void **state)
{
	begin_with(ONE);
	put(file,
	    "log: {level: warn}\nservers: {a: {command: cat, pin: enforce}, b: {command: cat, sandbox: "
	    "{mode: landlock}}}\n");
	order(1);
	hear_config(2);
	assert_int_equal(count_logged("server=b in_force="), 0);
	judge(true);
	assert_int_equal(count_logged("server=b in_force="), 1);
	assert_int_equal(count_logged("reload_used"), 0);
	assert_true(text_stores.items[IPC_TEXT_PINS].is_used);
	assert_ptr_equal(certificates.config, server_slots_config(&slots));
}

/* When it begins, which is before anything is read, and how it ended. */
static void systemd_is_told(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char text[128] = "";

	strcpy(address.sun_path, filled("@/notify"));
	assert_int_equal(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	notify_init(&notify);
	begin_with(ONE);
	for (uint64_t i = 1; i <= 2; i++) {
		put(file, i == 1 ? TWO : BAD);
		order(i);
		if (i == 1) {
			hear_config(2);
			judge(true);
		}
		hear_report(i, i == 1);
		text[recv(manager, text, sizeof(text) - 1, 0)] = '\0';
		assert_string_equal(text, "RELOADING=1\nMONOTONIC_USEC=1000000000");
		text[recv(manager, text, sizeof(text) - 1, 0)] = '\0';
		assert_true(strncmp(text, "READY=1\nSTATUS=", 15) == 0);
		assert_int_equal(recv(manager, text, sizeof(text), 0), -1);
	}
	close(notify.fd);
	notify.fd = -1;
	close(manager);
}

static void what_cannot_be_kept_is_refused(void **state)
{
	static const struct {
		const char *yaml, *report;
	} rows[] = {
		{ "servers: {a: {command: cat, user: nobody-has-this}}\n",
		  "error servers.a.user: there is no user 'nobody-has-this'\n" },
		{ "servers: {a: {command: cat, enabled: false, user: nobody-has-this}, b: "
		  "{command: cat}}\n",
		  NULL },
		{ "servers: {a: {command: cat, resources: {memory: 512MiB}}}\n",
		  "error servers.a.resources: needs a restart, because the daemon was started "
		  "without limits of this kind\n" },
		{ "servers: {a: {command: cat, enabled: false, resources: {memory: 512MiB}}, b: "
		  "{command: cat}}\n",
		  NULL },
		/* Of what needs a restart only a configuration that can be used tells. */
		{ "admin: {address: 'off'}\nservers: {a: {command: cat, resources: {memory: "
		  "512MiB}}}\n",
		  "error servers.a.resources: needs a restart, because the daemon was started "
		  "without limits of this kind\n" },
	};

	begin_with(ONE);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put(file, rows[i].yaml);
		order(i + 1);
		if (rows[i].report != NULL) {
			assert_string_equal(hear_report(i + 1, false), rows[i].report);
			continue;
		}
		hear_config(2);
		judge(false);
		hear_report(i + 1, false);
	}
	for (size_t i = 1; i < SERVERS_MAX; i++)
		slots.slots[i].state = SERVER_SLOT_OVER;
	put(file, "servers: {a: {command: cat}, b: {command: cat}}\n");
	order(9);
	assert_string_equal(
		hear_report(9, false),
		"error too many servers of earlier configurations still have processes; "
		"try again later\n");
	for (size_t i = 1; i < SERVERS_MAX; i++)
		slots.slots[i].state = SERVER_SLOT_FREE;
	put(file, "admin: {address: 'off'}\n" ONE);
	order(10);
	hear_config(1);
	judge(true);
	assert_string_equal(
		hear_report(10, true),
		"warning admin.address: the change takes effect only after a restart\n");
	assert_string_equal(server_slots_config(&slots)->admin_address, "auto");
	assert_int_equal(count_logged("reload_warning"), 1);
}

#define TO "log: {target: '%s/log'}\naudit: {to: '%s/%s'}\n" ONE

/* Until then, and if it is judged bad, the log and the audit go where they went. */
static void the_log_and_the_audit_go_elsewhere(void **state)
{
	char *text = mem_printf(TO, directory, directory, "audit");
	char *bad = mem_printf(TO, directory, directory, "missing/audit");
	char *path = mem_printf("%s/log", directory);
	struct stat found;
	char moved[128];
	int before;

	begin_with(ONE);
	before = log_fd;
	put(file, bad);
	order(1);
	assert_non_null(strstr(hear_report(1, false), ": audit.to: cannot open the audit file"));
	put(file, text);
	order(2);
	hear_config(1);
	assert_int_equal(log_fd, before);
	judge(false);
	assert_non_null(strstr(hear_report(2, false), "error the gateway cannot use"));
	assert_int_equal(log_fd, before);
	assert_null(audit.to);
	assert_int_equal(stat(path, &found), 0);
	assert_int_equal(found.st_size, 0);
	order(3);
	hear_config(1);
	judge(true);
	assert_string_equal(hear_report(3, true), "");
	assert_int_equal(stat(path, &found), 0);
	assert_true(found.st_size > 0);
	assert_non_null(strstr(audit.to, "/audit"));
	assert_true(audit.fd >= 0);
	/* Somebody rotates them. */
	snprintf(moved, sizeof(moved), "%s.1", path);
	assert_int_equal(rename(path, moved), 0);
	snprintf(moved, sizeof(moved), "%s/audit", directory);
	assert_int_equal(unlink(moved), 0);
	reload_ask(&reload);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access(moved, F_OK), 0);
	reload.is_owed = false;
	put(file, ONE); /* the log goes to where it goes by default */
	order(4);
	hear_config(1);
	judge(true);
	hear_report(4, true);
	assert_int_equal(log_fd, STDERR_FILENO);
	assert_null(audit.to);
	free(text);
	free(bad);
	free(path);
}

/* One that was not read yet is nobody's, and nobody waits for ever. */
static void an_answer_takes_the_place_of_the_one_before(void **state)
{
	begin_with(ONE);
	reload_answer(&reload, 5, true, SLICE_LIT("one"));
	reload_answer(&reload, 3, false, SLICE_LIT("two"));
	turn();
	assert_string_equal(hear_report(5, false), "two");
	assert_true(hears_nothing());
	reload_answer(&reload, 2, true, SLICE_LIT("three"));
	reload_answer(&reload, 4, true, SLICE_LIT("four"));
	turn();
	assert_string_equal(hear_report(4, true), "four");
}

static void what_is_judged_bad_is_not_used(void **state)
{
	begin_with(ONE);
	put(file, TWO);
	order(1);
	hear_config(2);
	judge(false);
	assert_int_equal(servers_in_use(), 1);
	assert_non_null(
		strstr(hear_report(1, false), "error the gateway cannot use the configuration"));
	/* It is tried again. */
	order(2);
	hear_config(2);
	judge(true);
	assert_string_equal(hear_report(2, true), "added b\n");
}

#define ISSUER(name)                                            \
	"public_url: https://mcp.example\nauth: {mode: oauth, " \
	"issuers: [{issuer: \"https://" name ".example\"}]}\n" ONE

/* Nobody asks while it is not known who is meant, and somebody does so afterwards, whatever the verdict is. */
static void whoever_fetches_goes_on_after_any_verdict(void **state)
{
	begin_with(ISSUER("a"));
	for (int i = 0; i < 4; i++) {
		bool is_used = i % 2 == 1;

		assert_int_equal(fetcher.gateway_fd, ends[0]);
		put(file, i < 2 ? ISSUER("b") : ISSUER("c"));
		order((uint64_t)i + 1);
		hear_config(1);
		assert_int_equal(fetcher.gateway_fd, -1);
		judge(is_used);
		assert_int_equal(fetcher.gateway_fd, ends[0]);
		hear_report((uint64_t)i + 1, is_used);
		assert_non_null(strstr(text_of(fetcher.config), i == 0 ? "https://a.example" :
								i < 3  ? "https://b.example" :
									 "https://c.example"));
	}
	put(file, ISSUER("d"));
	order(5);
	hear_config(1);
	end_gateway();
	start_gateway();
	assert_int_equal(fetcher.gateway_fd, ends[0]);
	assert_non_null(strstr(text_of(fetcher.config), "https://c.example"));
}

/* What is asked by number must not be asked of the issuers that were there before. */
static void nobody_fetches_without_the_issuers_in_use(void **state)
{
	struct rlimit before, none;
	struct error err;

	begin_with(ISSUER("a"));
	helper_process_set_gateway(&fetcher, -1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(helper_process_renew(&fetcher, server_slots_config(&slots), &err), -1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(fetcher.config, -1);
	helper_process_set_gateway(&fetcher, ends[0]);
	assert_int_equal(helper_process_do_due(&fetcher), UINT64_MAX);
	order(1);
	hear_config(1);
	judge(true);
	assert_non_null(strstr(text_of(fetcher.config), "https://a.example"));
}

static void bad_files_never_reach_a_gateway(void **state)
{
	begin_with(ONE);
	put(file, BAD);
	order(7);
	assert_non_null(strstr(hear_report(7, false), "unknown key 'nonsense'"));
	assert_true(hears_nothing());
	assert_int_equal(reload.state, RELOAD_IDLE);
	/* Nobody is asked, and says so: nothing. */
	judge(true);
	assert_int_equal(servers_in_use(), 1);
}

static void orders_meanwhile_are_done_afterwards(void **state)
{
	begin_with(ONE);
	put(file, TWO);
	order(1);
	order(2);
	order(3);
	hear_config(2);
	assert_true(hears_nothing());
	put(file, ONE);
	judge(true);
	turn();
	assert_string_equal(hear_report(1, true), "added b\n");
	hear_config(1);
	judge(true);
	assert_string_equal(hear_report(3, true), "removed b\n");
	turn();
	assert_true(hears_nothing());
}

/* A gateway that was taken over orders as often as it likes, with any number; SIGHUP waits for none of that. */
static void orders_are_bounded(void **state)
{
	begin_with(ONE);
	put(file, BAD);
	for (uint64_t i = 1; i <= RELOAD_ORDERS_AT_ONCE; i++) {
		order(i);
		assert_non_null(strstr(hear_report(i, false), "nonsense"));
	}
	order(UINT64_MAX);
	order(3);
	assert_int_equal(reload.state, RELOAD_IDLE);
	assert_int_equal(count_logged(" reload "), RELOAD_ORDERS_AT_ONCE);
	assert_int_equal(turn(), now_ms + RELOAD_ORDER_EACH_MS);
	pass(RELOAD_ORDER_EACH_MS - 1);
	assert_true(hears_nothing());
	pass(1);
	assert_non_null(strstr(hear_report(3, false), "nonsense"));
	assert_int_equal(turn(), UINT64_MAX);
	order(4);
	assert_true(hears_nothing());
	reload_ask(&reload);
	turn();
	assert_non_null(strstr(hear_report(4, false), "nonsense"));
	order(4);
	assert_true(hears_nothing());
	/* After a while there may be as many at once again, and no more. */
	pass(1000 * RELOAD_ORDER_EACH_MS);
	for (uint64_t i = 11; i <= 10 + RELOAD_ORDERS_AT_ONCE; i++) {
		order(i);
		hear_report(i, false);
	}
	order(99);
	assert_true(hears_nothing());
}

static void removed_servers_end_whatever_a_gateway_says(void **state)
{
	const struct ipc_message start_b = { .type = IPC_START, .start = { 5, 1 } };
	const struct ipc_message again_b = { .type = IPC_START, .start = { 6, 1 } };

	begin_with("drain_timeout: 1s\ndefaults: {stop: {grace: 1s, term: 1s}}\n" TWO);
	children_request(&children, &start_b);
	assert_int_equal(slots.slots[1].starts.processes, 1);
	put(file, "drain_timeout: 1s\n" ONE);
	order(1);
	hear_config(1);
	judge(true);
	clock_freeze(now_ms += 1000 + SERVER_SLOTS_RESERVE_MS);
	server_slots_do_due(&slots);
	assert_int_equal(count_logged("server_overdue"), 1);
	assert_int_equal(count_logged("ipc_bad_request"), 0);
	children_request(&children, &again_b);
	assert_int_equal(count_logged("ipc_bad_request"), 1);
	reload_free_slots(&reload);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
	clock_freeze(now_ms += 2000 + SERVER_SLOTS_RESERVE_MS);
	reload_free_slots(&reload);
	assert_int_equal(reap_child(), SIGKILL);
	reload_free_slots(&reload);
	assert_int_equal(slots.slots[1].state, SERVER_SLOT_OVER);
	children_tell(&children);
	assert_true(server_slots_release(&slots, 1));
	reload_free_slots(&reload);
	assert_int_equal(slots.slots[1].state, SERVER_SLOT_FREE);
}

/* Each process is that of its server, where several have some. */
static void those_of_others_go_on(void **state)
{
	struct ipc_message start = { .type = IPC_START };

	begin_with("drain_timeout: 1s\ndefaults: {stop: {grace: 1s, term: 1s}}\n" TWO);
	for (start.start.server = 0; start.start.server < 2; start.start.server++)
		for (int i = 0; i < 2; i++) {
			start.start.child++;
			children_request(&children, &start);
		}
	put(file, "drain_timeout: 1s\n" ONE);
	order(1);
	hear_config(1);
	judge(true);
	clock_freeze(now_ms += 1000 + SERVER_SLOTS_RESERVE_MS);
	server_slots_do_due(&slots);
	clock_freeze(now_ms += 2000 + SERVER_SLOTS_RESERVE_MS);
	reload_free_slots(&reload);
	for (int i = 0; i < 2; i++)
		assert_int_equal(reap_child(), SIGKILL);
	assert_int_equal(slots.slots[1].starts.processes, 2); /* the gateway is not told yet */
	children_tell(&children);
	assert_int_equal(slots.slots[1].starts.processes, 0);
	assert_int_equal(slots.slots[0].starts.processes, 2);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
	children_set_gateway(&children, -1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(reap_child(), SIGKILL);
}

/* Each server has its own line in the log, whatever another one of its number has had. */
static void failures_are_not_those_of_the_one_before(void **state)
{
	struct ipc_message start = { .type = IPC_START };

	begin_with("servers: {a: {command: /nonexistent/a}}\n");
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < 2; j++) {
			start.start.child++;
			children_request(&children, &start);
			assert_int_equal(reap_child(), 0);
		}
		assert_int_equal(count_logged("child_spawn_failed"), (size_t)i + 1);
		if (i > 0)
			return;
		children_tell(&children);
		put(file, "servers: {b: {command: cat}}\n");
		order(1);
		while (ipc_recv_any())
			;
		judge(true);
		assert_true(server_slots_release(&slots, 0));
		reload_free_slots(&reload);
		put(file, "servers: {c: {command: /nonexistent/c}}\n");
		order(2);
		while (ipc_recv_any())
			;
		judge(true);
		assert_string_equal(slots.table.servers[0].conf.name, "c");
	}
}

/* Nothing is read that no gateway can judge: SIGHUP while there is none, or one that does not serve yet. */
static void reload_waits_for_a_gateway_that_serves(void **state)
{
	begin_with(ONE);
	end_gateway();
	put(file, TWO);
	reload_ask(&reload);
	turn();
	assert_int_equal(reload.state, RELOAD_WAITING);
	assert_int_equal(servers_in_use(), 1);
	assert_int_equal(pass(RELOAD_VERDICT_MS), UINT64_MAX);
	start_gateway();
	turn();
	assert_int_equal(pass(RELOAD_VERDICT_MS), UINT64_MAX);
	assert_true(hears_nothing());
	assert_int_equal(reload.state, RELOAD_WAITING);
	serve();
	hear_config(2);
	judge(true);
	assert_int_equal(servers_in_use(), 2);
	turn();
	hear_report(0, true); /* nobody's order */
	assert_true(hears_nothing());
}

static void gateway_that_does_not_judge_is_ended(void **state)
{
	begin_with(ONE);
	put(file, TWO);
	order(1);
	hear_config(2);
	assert_int_equal(turn(), now_ms + RELOAD_VERDICT_MS);
	pass(RELOAD_VERDICT_MS - 1);
	assert_false(is_killed());
	assert_int_equal(reload.state, RELOAD_JUDGED);
	pass(1);
	wait_until_killed();
	assert_int_equal(count_logged("gateway_overdue"), 1);
	assert_int_equal(count_logged("has not said whether it uses the configuration within 30 s"),
			 1);
	/* Its word comes too late. */
	judge(true);
	assert_int_equal(servers_in_use(), 1);
	assert_int_equal(pass(RELOAD_VERDICT_MS), UINT64_MAX);
	end_gateway();
	start_gateway();
	serve();
	assert_int_equal(reload.state, RELOAD_IDLE);
	assert_true(hears_nothing());
	/* The next one is asked again only when somebody asks for it. */
	order(1);
	hear_config(2);
	judge(true);
	assert_string_equal(hear_report(1, true), "added b\n");
}

/* One that reads nothing has no room for it. */
static void gateway_that_does_not_read_is_ended(void **state)
{
	begin_with(ONE);
	put(file, TWO);
	fill_socket();
	order(1);
	assert_int_equal(reload.state, RELOAD_SENDING);
	pass(RELOAD_VERDICT_MS - 1);
	assert_false(is_killed());
	pass(1);
	wait_until_killed();
	assert_int_equal(count_logged("has not accepted the configuration within 30 s"), 1);
	assert_int_equal(servers_in_use(), 1);
}

/* Of anything, once; of what it judged, when the next one does. */
static void gateway_that_dies_of_it_does_so_twice(void **state)
{
	begin_with(ONE);
	put(file, TWO);
	for (int i = 0; i < 2; i++) {
		reload_ask(&reload);
		turn();
		turn();
		hear_config(2);
		end_gateway();
		assert_int_equal(reload.state, RELOAD_WAITING);
		start_gateway();
		serve();
		hear_config(2);
		end_gateway();
		assert_int_equal(count_logged("ended before it used the configuration"),
				 (size_t)i + 1);
		assert_int_equal(reload.state, RELOAD_IDLE);
		start_gateway();
		serve();
		assert_non_null(strstr(hear_report(0, false), "error the gateway ended"));
		assert_true(hears_nothing());
	}
	/* One that died once before does not count for another reload. */
	reload_ask(&reload);
	turn();
	turn();
	hear_config(2);
	end_gateway();
	put(file, BAD);
	start_gateway();
	serve();
	assert_int_equal(reload.state, RELOAD_IDLE);
	hear_report(0, false);
	put(file, TWO);
	order(1);
	hear_config(2);
	end_gateway();
	assert_int_equal(reload.state, RELOAD_WAITING);
	assert_int_equal(count_logged("ended before it used the configuration"), 2);
}

static void stopping_daemon_begins_none(void **state)
{
	begin_with(ONE);
	put(file, TWO);
	reload_ask(&reload);
	reload_stop(&reload, ends[0]);
	turn();
	assert_int_equal(reload.state, RELOAD_IDLE);
	reload_ask(&reload);
	turn();
	assert_true(hears_nothing());
	assert_int_equal(servers_in_use(), 1);
}

/* What the gateway says of a configuration that it judges when the daemon stops is no fault of the file. */
static void stopping_daemon_blames_no_file(void **state)
{
	begin_with(ONE);
	put(file, TWO);
	order(1);
	hear_config(2);
	reload_stop(&reload, ends[0]);
	assert_int_equal(reload.state, RELOAD_JUDGED);
	judge(false);
	assert_string_equal(hear_report(1, false), "");
	assert_int_equal(count_logged("reload_refused"), 0);
}

static void stopping_daemon_fetches_from_the_issuers_in_use(void **state)
{
	begin_with(ISSUER("a"));
	put(file, ISSUER("b"));
	fill_socket();
	order(1);
	assert_int_equal(reload.state, RELOAD_SENDING);
	assert_int_equal(fetcher.gateway_fd, -1);
	reload_stop(&reload, ends[0]);
	assert_int_equal(reload.state, RELOAD_IDLE);
	assert_int_equal(fetcher.gateway_fd, ends[0]);
	assert_false(reload_has_untold(&reload));
}

/* Neither what came of its orders nor a configuration that it did not read is the next one's. */
static void what_one_gateway_did_not_read_the_next_one_is_not_told(void **state)
{
	begin_with(ONE);
	put(file, BAD);
	fill_socket();
	order(1);
	assert_true(reload_has_untold(&reload));
	end_gateway();
	assert_false(reload_has_untold(&reload));
	for (int i = 0; i < 2; i++) {
		put(file, TWO);
		start_gateway();
		if (i == 0) {
			serve();
			assert_true(hears_nothing());
			fill_socket();
			order(1);
		} else {
			fill_socket();
			serve();
		}
		assert_int_equal(reload.state, RELOAD_SENDING);
		end_gateway();
		assert_int_equal(reload.state, i == 0 ? RELOAD_WAITING : RELOAD_IDLE);
	}
	assert_int_equal(count_logged("ended before it used the configuration"), 1);
}

/* ---- listeners ---- */

static bool is_listening(const char *name)
{
	return address_owner(filled(name)) == getpid();
}

static void open_listeners(void)
{
	const struct config *config = server_slots_config(&slots);
	struct address address;
	struct error err;

	for (size_t i = 0; i < config->listen_count; i++) {
		assert_int_equal(address_parse(config->listen[i].address, &address, &err), 0);
		listeners[i] = address_listen((const struct sockaddr *)&address.socket,
					      address.socket_size, &err);
		assert_true(listeners[i] >= 0);
	}
}

/* 0: it is judged bad, 1: good, 2: good when the daemon stops. */
static void sockets_come_and_go_with_the_verdict(void **state)
{
	begin_with(filled("listen: [{address: 'unix:@/a'}, {address: 'unix:@/b'}]\n" ONE));
	open_listeners();
	for (uint64_t i = 0; i < 3; i++) {
		const char *next =
			i < 2 ? "listen: [{address: 'unix:@/b', proxy_protocol: true}, {address: "
				"'unix:@/c'}]\n" ONE :
				"listen: [{address: 'unix:@/d'}]\n" ONE;
		int fd;

		put(file, filled(next));
		order(i + 1);
		if (i < 2) {
			assert_int_equal(hear(IPC_LISTENER, &fd).listener.kept, 1);
			assert_int_equal(fd, -1);
		}
		assert_int_equal(hear(IPC_LISTENER, &fd).listener.kept, -1);
		assert_true(fd >= 0);
		close(fd);
		hear_config(1);
		assert_true(is_listening(i < 2 ? "@/c" : "@/d"));
		if (i == 2)
			reload_stop(&reload, ends[0]);
		judge(i > 0);
		hear_report(i + 1, i > 0);
		assert_int_equal(is_listening("@/a"), i == 0);
		assert_int_equal(is_listening("@/b"), i < 2);
		assert_int_equal(is_listening("@/c"), i == 1);
		assert_false(is_listening("@/d"));
	}
	assert_int_equal(listeners[0], -1);
}

static void each_change_of_a_listener_is_told(void **state)
{
#define ANY_ONE "auth: {mode: anonymous}\n" ONE
	static const struct {
		const char *yaml, *report;
	} rows[] = {
		{ "listen: [{address: 'unix:@/b', proxy_protocol: true}, {address: 'unix:@/c'}]\n" ANY_ONE,
		  "listen_changed unix:@/b\nlisten_added unix:@/c\nlisten_removed unix:@/a\nlisten_removed unix:@/x\n" },
		{ "listen: [{address: 'unix:@/c'}, {address: 'unix:@/b', proxy_protocol: true}]\n" ANY_ONE,
		  "" },
		{ "listen: [{address: 'unix:@/c'}]\n" ANY_ONE, "listen_removed unix:@/b\n" },
		{ "listen: [{address: 'unix:@/c', tls: {certificate: /none, key: /none}}]\n" ANY_ONE,
		  NULL },
		{ "listen: [{address: 'unix:@/c'}, {address: 'unix:@/none/d'}]\n" ANY_ONE, NULL },
	};

	begin_with(filled(
		"listen: [{address: 'unix:@/a'}, {address: 'unix:@/x'}, {address: 'unix:@/b'}]\n" ONE));
	open_listeners();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_used = rows[i].report != NULL;

		put(file, filled(rows[i].yaml));
		order(i + 1);
		while (is_used && ipc_recv_any())
			;
		judge(true);
		if (is_used)
			assert_string_equal(hear_report(i + 1, true), filled(rows[i].report));
		else
			assert_non_null(strstr(hear_report(i + 1, false), "error "));
		assert_true(is_listening("@/c"));
	}
	listeners_stop(server_slots_config(&slots), listeners);
}

/* ---- certificates ---- */

static void make_certificate(void)
{
	EVP_PKEY *pkey = EVP_EC_gen("P-256");
	X509 *x509 = X509_new();
	char path[128];
	FILE *out;

	X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x509), 100 * 24 * 3600);
	X509_set_pubkey(x509, pkey);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
				   (const unsigned char *)"x.example", -1, -1, 0);
	assert_true(X509_sign(x509, pkey, EVP_sha256()) > 0);
	snprintf(path, sizeof(path), "%s/cert", directory);
	put(path, "");
	out = fopen(path, "w");
	assert_int_equal(PEM_write_X509(out, x509), 1);
	fclose(out);
	snprintf(path, sizeof(path), "%s/key", directory);
	put(path, "");
	out = fopen(path, "w");
	assert_int_equal(PEM_write_PrivateKey(out, pkey, NULL, NULL, 0, NULL, NULL), 1);
	fclose(out);
	X509_free(x509);
	EVP_PKEY_free(pkey);
}

static void begin_with_certificates(void)
{
	char *text;

	make_certificate();
	text = mem_printf(
		"listen: [{address: '127.0.0.1:0', tls: {certificate: %s/cert, key: %s/key}}]\n" ONE,
		directory, directory);
	begin_with(text);
	free(text);
	hear(IPC_CERTIFICATE, NULL);
	hear(IPC_CERTIFICATES_END, NULL);
}

static void hear_certificates(void)
{
	turn();
	hear(IPC_CERTIFICATE, NULL);
	hear(IPC_CERTIFICATES_END, NULL);
}

static void certificates_come_last(void **state)
{
	begin_with_certificates();
	order(1);
	hear_config(1);
	judge(true);
	hear_certificates();
	assert_true(hears_nothing());
	assert_int_equal(reload.state, RELOAD_CERTIFICATES);
	reload_on_certificates(&reload, true);
	turn();
	assert_string_equal(hear_report(1, true), "");
	/* Bad ones are told, and the configuration is used all the same. */
	order(2);
	hear_config(1);
	judge(true);
	hear_certificates();
	reload_on_certificates(&reload, false);
	turn();
	assert_non_null(strstr(hear_report(2, true), "error the certificates cannot be used"));
	/* With a file that is bad as well, as they may have been renewed. */
	put(file, BAD);
	order(3);
	hear_certificates();
	reload_on_certificates(&reload, true);
	turn();
	assert_non_null(strstr(hear_report(3, false), "unknown key"));
}

static void gateway_that_does_not_judge_certificates_is_ended(void **state)
{
	begin_with_certificates();
	order(1);
	hear_config(1);
	judge(true);
	hear_certificates();
	pass(RELOAD_VERDICT_MS - 1);
	assert_false(is_killed());
	pass(1);
	wait_until_killed();
	assert_int_equal(count_logged("has not said whether it uses the certificates within 30 s"),
			 1);
	assert_int_equal(reload.state, RELOAD_IDLE);
	end_gateway();
	/* The next one gets the set before, once, and nothing more. */
	start_gateway();
	hear_certificates();
	serve();
	assert_int_equal(reload.state, RELOAD_IDLE);
	assert_true(hears_nothing());
	/* Of one that judges no configuration the next one gets both sets: they are read again whatever becomes of that. */
	order(2);
	hear_config(1);
	pass(RELOAD_VERDICT_MS);
	wait_until_killed();
	assert_int_equal(reload.state, RELOAD_CERTIFICATES);
	end_gateway();
	assert_int_equal(pass(2 * RELOAD_VERDICT_MS), UINT64_MAX);
	start_gateway();
	hear_certificates();
	serve();
	hear_certificates();
	reload_on_certificates(&reload, true);
	assert_int_equal(reload.state, RELOAD_IDLE);
}

/* Those that were not judged are read again for the next one. */
static void certificates_wait_for_the_next_gateway(void **state)
{
	begin_with_certificates();
	order(1);
	hear_config(1);
	judge(true);
	hear_certificates();
	end_gateway();
	assert_int_equal(reload.state, RELOAD_CERTIFICATES);
	start_gateway();
	hear_certificates();
	serve();
	hear_certificates();
	assert_int_equal(reload.state, RELOAD_CERTIFICATES);
	reload_on_certificates(&reload, true);
	assert_int_equal(reload.state, RELOAD_IDLE);
}

/* The file that comes next, by its number. */
static ino_t hear_file(void)
{
	struct stat found;
	int fd;

	turn();
	hear(IPC_CERTIFICATE, &fd);
	assert_int_equal(fstat(fd, &found), 0);
	close(fd);
	hear(IPC_CERTIFICATES_END, NULL);
	return found.st_ino;
}

static void the_next_gateway_gets_the_set_in_use(void **state)
{
	char *before = mem_printf("%s/before", directory); /* its number is not given again */
	ino_t in_use, next;

	begin_with_certificates();
	certificates_set_gateway(&certificates);
	in_use = hear_file();
	/* Nobody asks, and it says so. */
	reload_on_certificates(&reload, false);
	assert_int_equal(count_logged("reload_refused"), 0);
	for (int i = 0; i < 2; i++) {
		bool is_used = i == 1;

		assert_int_equal(rename(filled("@/cert"), before), 0);
		make_certificate();
		order((uint64_t)i + 1);
		hear_config(1);
		judge(true);
		next = hear_file();
		assert_true(next != in_use);
		reload_on_certificates(&reload, is_used);
		turn();
		hear_report((uint64_t)i + 1, true);
		certificates_set_gateway(&certificates);
		assert_int_equal(hear_file(), is_used ? next : in_use);
	}
	free(before);
}

/* They may have been renewed since those were opened that are being judged. */
static void certificates_are_read_again_after_a_verdict(void **state)
{
	begin_with_certificates();
	order(1);
	hear_config(1);
	judge(true);
	hear_certificates();
	certificates_reload(&certificates);
	assert_true(hears_nothing());
	reload_on_certificates(&reload, true);
	assert_int_equal(reload.state, RELOAD_CERTIFICATES);
	hear_certificates();
	reload_on_certificates(&reload, true);
	assert_int_equal(reload.state, RELOAD_IDLE);
	turn();
	hear_report(1, true);
	assert_true(hears_nothing());
}

static void a_set_that_is_not_whole_is_none(void **state)
{
	ino_t in_use;

	begin_with_certificates();
	certificates_set_gateway(&certificates);
	in_use = hear_file();
	assert_int_equal(unlink(filled("@/key")), 0);
	certificates_reload(&certificates);
	assert_int_equal(count_logged("certificates_refused"), 1);
	assert_true(hears_nothing());
	certificates_set_gateway(&certificates);
	assert_int_equal(hear_file(), in_use);
}

/* With the listeners that are opened for it, and by the places in it. */
static void certificates_come_with_another_listen(void **state)
{
#define PAIR "{certificate: @/cert, key: @/key}"
	make_certificate();
	begin_with(filled("listen: [{address: 'unix:@/a'}]\n" ONE));
	open_listeners();
	for (int i = 0; i < 2; i++) {
		put(file,
		    filled("listen: [{address: 'unix:@/a'}, {address: '127.0.0.1:0', tls: [" PAIR
			   ", " PAIR "]}, {address: '127.0.0.2:0', tls: " PAIR "}]\n" ONE));
		order((uint64_t)i + 1);
		for (int j = 0; j < 3; j++)
			hear(IPC_LISTENER, NULL);
		for (uint32_t j = 0; j < 3; j++) {
			struct ipc_message message = hear(IPC_CERTIFICATE, NULL);

			assert_int_equal(message.certificate.listener, j < 2 ? 1 : 2);
			assert_int_equal(message.certificate.entry, j < 2 ? j : 0);
			assert_int_equal(message.certificate.is_next, 1);
		}
		hear_config(1);
		judge(i == 1);
		if (i == 0)
			hear_report(1, false);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(hear(IPC_CERTIFICATE, NULL).certificate.is_next, 0);
	hear(IPC_CERTIFICATES_END, NULL);
	assert_true(hears_nothing());
	/* Links that servers of the configuration before could have made are not followed later, either. */
	assert_ptr_equal(certificates.running, &slots.table);
	listeners_stop(server_slots_config(&slots), listeners);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_judged_good_is_used),
		TEST(each_change_of_a_server_is_told),
		TEST(the_next_configuration_is_that_of_all_parts),
		TEST(systemd_is_told),
		TEST(what_cannot_be_kept_is_refused),
		TEST(the_log_and_the_audit_go_elsewhere),
		TEST(an_answer_takes_the_place_of_the_one_before),
		TEST(what_is_judged_bad_is_not_used),
		TEST(whoever_fetches_goes_on_after_any_verdict),
		TEST(nobody_fetches_without_the_issuers_in_use),
		TEST(bad_files_never_reach_a_gateway),
		TEST(orders_meanwhile_are_done_afterwards),
		TEST(orders_are_bounded),
		TEST(removed_servers_end_whatever_a_gateway_says),
		TEST(those_of_others_go_on),
		TEST(failures_are_not_those_of_the_one_before),
		TEST(reload_waits_for_a_gateway_that_serves),
		TEST(gateway_that_does_not_judge_is_ended),
		TEST(gateway_that_does_not_read_is_ended),
		TEST(gateway_that_dies_of_it_does_so_twice),
		TEST(stopping_daemon_begins_none),
		TEST(stopping_daemon_blames_no_file),
		TEST(stopping_daemon_fetches_from_the_issuers_in_use),
		TEST(what_one_gateway_did_not_read_the_next_one_is_not_told),
		TEST(sockets_come_and_go_with_the_verdict),
		TEST(each_change_of_a_listener_is_told),
		TEST(certificates_come_last),
		TEST(gateway_that_does_not_judge_certificates_is_ended),
		TEST(certificates_wait_for_the_next_gateway),
		TEST(the_next_gateway_gets_the_set_in_use),
		TEST(certificates_are_read_again_after_a_verdict),
		TEST(a_set_that_is_not_whole_is_none),
		TEST(certificates_come_with_another_listen),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
