/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities(7) without the library. */
#include "keeper/capabilities.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int capabilities_drop_all(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 }, { 0, 0, 0 } };

	/* Those that a unit granted to the daemon, like binding low ports. */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* Up to the last that the kernel knows. Without CAP_SETPCAP the first call fails already. */
	for (unsigned long i = 0; prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; i++)
		;
	return (int)syscall(SYS_capset, &header, none);
}

int capabilities_use_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 }, { 0, 0, 0 } };

	if (syscall(SYS_capget, &header, own) < 0)
		return -1;
	own[0].effective = 1U << CAP_SYS_ADMIN;
	own[1].effective = 0;
	return (int)syscall(SYS_capset, &header, own);
}

bool capabilities_reach_users(void)
{
	static const uint32_t needed = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 }, { 0, 0, 0 } };

	return syscall(SYS_capget, &header, own) == 0 && (own[0].effective & needed) == needed;
}
