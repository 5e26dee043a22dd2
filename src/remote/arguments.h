/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mcpgated-remote is told when it starts: header fields in its environment, the rest in its arguments. Its
 * files are read here, before it is confined.
 */
#pragma once

struct remote;

/* Ends the program, with this text on stderr. */
_Noreturn void die(const char *text);
/* Fills `remote`, which is zeroed, as far as it is told; wipes what is secret where it was. Ends the program if it cannot be. */
void arguments_take(struct remote *remote, int argc, char **argv);
