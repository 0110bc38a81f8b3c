/* site.h: the whole site, from an index of records.
 *
 *   index.html .json          the operators, each pass beside the other, the best of each, search
 *   operators/OP.html .json   one operator: what it computes, ranks, cases, charts, what others report
 *   records.html .json        every record
 *   records/ID.html .json     one record: evidence and every case; records/ID.record.json is the record itself
 *   challenges.html .json     hardware without records, and how to make one
 *   rules.html .json          how records are decided
 *   site.css, site.js, search.js
 *
 * Every page is written from a template and the JSON beside it, and works from file:// without a network. */
#ifndef ROPEGRAD_TOOLS_SITE_SITE_H
#define ROPEGRAD_TOOLS_SITE_SITE_H

#include "harness/evidence/index.h"

typedef struct rgs_site_request {
  const char *out;       /* the folder to make; one made by an earlier run is replaced, any other is left alone */
  const char *templates; /* folder with the templates, site.css and site.js */
  const rge_suites *suites;
  const char *version; /* of the tool */
} rgs_site_request;

/* Writes into a folder beside `out` and puts it in its place at the end: on any failure an existing site stays as it
 * was. */
bool rgs_site_write(const rge_index *index, const rgs_site_request *request, rgh_message *why);

#endif /* ROPEGRAD_TOOLS_SITE_SITE_H */
