/* suggest.h: what someone may have meant who mistyped a name. */
#ifndef ROPEGRAD_HARNESS_BASE_SUGGEST_H
#define ROPEGRAD_HARNESS_BASE_SUGGEST_H

/* The index of the name that the fewest insertions, deletions and changes of a character lead to, where the rest of a
 * name of which `typed` is a part counts as one; -1: it takes more than one, and more than a third of the letters. */
int rgh_nearest_name(const char *typed, const char *const *names, int num_names);

#endif /* ROPEGRAD_HARNESS_BASE_SUGGEST_H */
