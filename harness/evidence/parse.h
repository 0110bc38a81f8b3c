/* parse.h: JSON from memory to jansson's values. jansson reads a stream a character at a time, some 3500 instructions for
 * a number; a record is little but numbers, and a site has a thousand records. This takes a quarter of its time.
 *
 * Measured, of one core for a record of 331 kB: this 2.7 ms; jansson 10.7; cJSON 1.7.15 6.6 and json-c 0.16 6.5, before
 * their trees are made jansson's; yajl 2.1.0 3.3 without any tree, and its last release is of 2014; simdjson is C++. A
 * site of 1,000 records in 5 s on two cores leaves some 4 ms a record for it.
 *
 * What is accepted is what json_loadb accepts with JSON_REJECT_DUPLICATES, a test compares them: RFC 8259 in UTF-8, no
 * "\u0000", no number beyond a double or an int64. Only the depth has a smaller limit. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_PARSE_H
#define ROPEGRAD_HARNESS_EVIDENCE_PARSE_H

#include <jansson.h>

enum { RGE_MAX_JSON_DEPTH = 64 };

typedef struct rge_json_error {
  int line, column; /* from 1 */
  const char *what;
} rge_json_error;

/* `text` has a '\0' at text[length]. The root is an object or a list. NULL: *error says where and what. */
json_t *rge_json_parse(const char *text, size_t length, rge_json_error *error);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_PARSE_H */
