/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies a server in 32 bytes: its name, command and arguments, and the files that these name,
 * in their current state. A new version of the program, or of a script given to an interpreter, has
 * another digest. BACK-ERA-06
 */
#ifndef MCPGATED_KEEPER_PROGRAM_DIGEST_H
#define MCPGATED_KEEPER_PROGRAM_DIGEST_H

struct launch_spec;

struct program_digest {
	unsigned char bytes[32]; /* SHA-256 */
};

void program_digest_make(const struct launch_spec *spec, struct program_digest *digest_r);

#endif
