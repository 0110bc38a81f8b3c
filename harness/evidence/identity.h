/* identity.h: what a record is called in a site: a name that stays, whatever other records there are. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_IDENTITY_H
#define ROPEGRAD_HARNESS_EVIDENCE_IDENTITY_H

#include "harness/evidence/record.h"

/* From the file's name below its folder, without ".json". Lower-case letters, digits, '_' and '-' stay and '/' becomes
 * "--": "h200/2026-12" -> "h200--2026-12". A name with anything else loses it and gets a hash of the whole name, so that
 * no two names share an identity: "H200 (1)" -> "h200-1-c0ffee123456". Safe in a file name and an address, and without
 * a '.', so that what a site puts behind one never makes it another. The caller owns it; NULL: no memory. */
char *rge_identity(const char *name);

/* Tells apart what still has one identity, the same name below two folders: the first keeps it, the others get the
 * beginning of their digests and, being the same file, a number. `records` are in the order in which they were found.
 * False: no memory. */
bool rge_identities_settle(rge_record *records, int count);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_IDENTITY_H */
