/* schema_node.h: a compiled schema, shared by what compiles it and what checks against it. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_SCHEMA_NODE_H
#define ROPEGRAD_HARNESS_EVIDENCE_SCHEMA_NODE_H

#include <regex.h>

#include "harness/evidence/schema.h"

/* Kinds of values, as bits. Every integer is a number. */
enum {
  RGE_KIND_OBJECT = 1,
  RGE_KIND_LIST = 2,
  RGE_KIND_TEXT = 4,
  RGE_KIND_INTEGER = 8,
  RGE_KIND_NUMBER = 16,
  RGE_KIND_BOOLEAN = 32,
  RGE_KIND_NULL = 64
};

typedef struct rge_schema_node rge_schema_node;

typedef struct rge_schema_property {
  const char *key;
  const rge_schema_node *node;
} rge_schema_property;

struct rge_schema_node {
  const json_t *source; /* the object of the schema file that this node was made from */
  rge_schema_node *next;
  unsigned kinds; /* 0: any */
  const json_t *allowed, *constant;
  bool has_minimum, minimum_excluded, has_maximum;
  double minimum, maximum;
  size_t least_items, least_length;
  bool has_pattern;
  regex_t pattern;
  const char *pattern_text;
  const json_t *required; /* list of keys */
  rge_schema_property *properties;
  int num_properties;
  bool closed; /* no other keys than the properties */
  const rge_schema_node *other, *items;
  const rge_schema_node **all, **any; /* ended by NULL; any: at least one must hold */
};

struct rge_schema {
  json_t *source;         /* the nodes point into it */
  rge_schema_node *nodes; /* all of them */
  const rge_schema_node *root;
};

#endif /* ROPEGRAD_HARNESS_EVIDENCE_SCHEMA_NODE_H */
