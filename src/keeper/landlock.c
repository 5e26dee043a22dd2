/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rights that the kernel does not know are left out silently: sandbox_check has refused configurations that
 * need them.
 */
#include "keeper/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RULE_NET_PORT 2
#define FS_OF_A_FILE                                                                       \
	((uint64_t)(LANDLOCK_FS_EXECUTE | LANDLOCK_FS_WRITE_FILE | LANDLOCK_FS_READ_FILE | \
		    LANDLOCK_FS_TRUNCATE | LANDLOCK_FS_IOCTL_DEV))

struct net_port_rule {
	uint64_t allowed;
	uint64_t port;
};

/* Asked once: a confined process may not ask. */
int landlock_version(void)
{
	static int version;

	if (version == 0)
		version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
				       LANDLOCK_CREATE_RULESET_VERSION);
	return version;
}

/* Each version knows so many rights of the file system, from bit 0 on. */
static uint64_t known_fs(int version)
{
	static const unsigned char counts[] = { 0, 13, 14, 15, 15, 16 };
	size_t at = (size_t)version < ARRAY_LEN(counts) ? (size_t)version : ARRAY_LEN(counts) - 1;

	return (UINT64_C(1) << counts[at]) - 1;
}

int landlock_open(const struct landlock_rights *rights)
{
	int version = landlock_version();
	struct landlock_rights known = *rights;
	size_t size = offsetof(struct landlock_rights, net);

	if (version < 1)
		return -1;
	known.fs &= known_fs(version);
	if (version >= LANDLOCK_VERSION_NET)
		size = offsetof(struct landlock_rights, scoped);
	if (version >= LANDLOCK_VERSION_SCOPED)
		size = sizeof(known);
	return (int)syscall(SYS_landlock_create_ruleset, &known, size, 0);
}

int landlock_allow_open(int ruleset, int fd, uint64_t fs)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat st;

	rule.allowed_access = fs & known_fs(landlock_version());
	if (fstat(fd, &st) < 0)
		return -1;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_OF_A_FILE;
	return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

int landlock_allow_path(int ruleset, const char *path, uint64_t fs)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	int result;

	if (fd < 0)
		return -1;
	result = landlock_allow_open(ruleset, fd, fs);
	close(fd);
	return result;
}

int landlock_allow_port(int ruleset, uint16_t port, uint64_t net)
{
	struct net_port_rule rule = { net, port };

	return (int)syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0);
}

int landlock_enforce(int ruleset)
{
	return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}
