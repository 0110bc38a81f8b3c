/* search.h: what the search box looks through. */
#ifndef ROPEGRAD_TOOLS_SITE_SEARCH_H
#define ROPEGRAD_TOOLS_SITE_SEARCH_H

#include "tools/site/page.h"

/* Adds something to be found by its title, its detail or the words. Takes words and detail over. */
void rgs_search_add(json_t *items, const char *kind, const char *title, json_t *words, json_t *detail,
                    const char *address);

/* Every case: with its time where one was measured, else with the command that measures it. ---- search_cases.c */
void rgs_search_add_cases(const rgs_site *site, json_t *items);

#endif /* ROPEGRAD_TOOLS_SITE_SEARCH_H */
