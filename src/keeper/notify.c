/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams to the socket that NOTIFY_SOCKET names, in the file system or abstract. */
#include "keeper/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/slice.h"
#include "base/text.h"

static uint64_t read_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	uint64_t value;
	uint64_t number;

	if (usec == NULL || text_parse_u64(slice_str(usec), &value) != 0 || value < 2000)
		return 0;
	if (pid != NULL &&
	    (text_parse_u64(slice_str(pid), &number) != 0 || number != (uint64_t)getpid()))
		return 0;
	return value / 1000 / 2;
}

static void open_socket(struct notify *notify, const char *path)
{
	size_t length = path != NULL ? strlen(path) : 0;

	CHECK(notify->fd < 0);
	if (length < 2 || length >= sizeof(notify->address.sun_path))
		return;
	if (path[0] != '/' && path[0] != '@')
		return; /* vsock, or nothing that we know */
	notify->address.sun_family = AF_UNIX;
	memcpy(notify->address.sun_path, path, length);
	if (path[0] == '@')
		notify->address.sun_path[0] = '\0';
	notify->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void notify_init(struct notify *notify)
{
	*notify = (struct notify){ .fd = -1 };
	open_socket(notify, getenv("NOTIFY_SOCKET"));
	if (notify->fd >= 0)
		notify->watchdog_ms = read_watchdog_ms();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void notify_send(const struct notify *notify, const char *text)
{
	if (notify->fd < 0)
		return;
	sendto(notify->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
	       (const struct sockaddr *)&notify->address, notify->size);
}
