/* SPDX-License-Identifier: Apache-2.0 */
/* The files of src/admin/page/, which make compiles into the program (page/generate). */
#ifndef MCPGATED_ADMIN_PAGE_FILE_H
#define MCPGATED_ADMIN_PAGE_FILE_H

#include <stddef.h>

struct page_file {
	const char *path; /* in requests */
	const char *type;
	const unsigned char *bytes;
	size_t size;
};

extern const struct page_file page_files[];
extern const size_t page_file_count;

#endif
