/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server is, in 32 bytes: its name, command and arguments, and the files that these name, as they are now. With a
 * new version of the program, or of the script that an interpreter is given, it is another one. BACK-ERA-06
 */
#ifndef MCPGATED_KEEPER_PROGRAM_DIGEST_H
#define MCPGATED_KEEPER_PROGRAM_DIGEST_H

struct launch_spec;

struct program_digest {
	unsigned char bytes[32]; /* SHA-256 */
};

void program_digest_make(const struct launch_spec *spec, struct program_digest *digest_r);

#endif
