/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local variables that end by themselves, wherever their block is left:
 *
 *	at_end(buf_fini) struct buf text = { 0 };
 *	at_end(mem_free) char *path = mem_printf("%s/%s", directory, name);
 *
 * Each has a value from the beginning: NULL, -1 or an empty one ends, too. The last declared ends first, after the value of `return` is
 * known. What is handed over to another owner is declared without. jansson has json_auto_t for this.
 */
#pragma once

/* Before a declaration; for each of its variables, `function` is called with the address. */
#define at_end(function) __attribute__((cleanup(function)))

/* free() of the pointer that is at this address. */
void mem_free(void *at);
/* Closes the descriptor, unless it is -1, which it is afterwards. errno stays as it is. */
void file_close(int *fd);
