/* record.h: a record as evidence: what it says, recomputed from its raw samples, and how far it can be trusted.
 *
 *   file --rge_file_read--> JSON --rge_schema_check--> problems
 *                            \--rge_record_read--> rge_record: entries of cases, and more problems
 *   records --rge_rank--> tiers (an entry that another run agrees with rises), best entry per hardware */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_RECORD_H
#define ROPEGRAD_HARNESS_EVIDENCE_RECORD_H

#include <jansson.h>
#include <stdint.h>

#include "harness/evidence/file.h"
#include "harness/evidence/problems.h"
#include "harness/evidence/suites.h"
#include "ropegrad/ropegrad_dev.h"

/* How far a result can be trusted, the best last. */
typedef enum rge_tier {
  RGE_REPORTED,     /* a number that someone states */
  RGE_REPRODUCIBLE, /* source, licence, command and raw samples are there, and every number follows from the samples */
  RGE_VERIFIED,     /* run again from the same commit, on the same machine, and both agree */
  RGE_REPLICATED,   /* the same on a second machine with the same hardware */
  RGE_NUM_TIERS
} rge_tier;
const char *rge_tier_name(rge_tier tier);

/* Of the raw samples of a case. */
typedef struct rge_quantiles {
  double low, lower, median, upper, high; /* least, first quartile, median, third quartile, largest */
  double deviation;                       /* median distance from the median, times 1.4826: robust sigma */
  int count;                              /* 0: there are none */
} rge_quantiles;

/* Another implementation, timed beside a case in the same run. */
typedef struct rge_peer {
  char *name;
  char *column; /* what it is a form of */
  double latency_us;
  double ratio; /* how many times as long as ropegrad for the same outputs; 0: not known */
  bool fastest_form;
} rge_peer;

typedef struct rge_case {
  char *name;
  int64_t dim[RG_MAX_DIMS]; /* in the order of op->dims; -1: not known */
  bool timed;
  double latency_us, floor_us, ratio; /* 0 where not timed */
  double roofline_us;                 /* 0: no datasheet gives one */
  double spread, floor_spread;        /* of the medians */
  int64_t read_bytes, write_bytes;
  rge_quantiles sample, floor_sample;
  uint64_t samples_hash;    /* of both, in the order of time: no two runs have the same */
  double allowance_used;    /* of the accuracy contract, at the worst element; -1: not compared */
  const char *worst_tensor; /* of the operator's table; NULL: not known */
  rge_peer *peers;          /* those that were timed and right, the fastest form of each */
  int num_peers;
  char *reason; /* why it was not timed; NULL: it was */
} rge_case;

typedef struct rge_record rge_record;

/* The cases of one operator in one mode: what is ranked. */
typedef struct rge_entry {
  const rge_record *record;
  const rg_operator *op;
  bool in_place;
  char *variant, *device;
  char *hardware;  /* the GPU of a CUDA device, else the CPU */
  int64_t threads; /* of one call; 0 on a GPU */
  char *setting; /* what else must be alike in two times that are compared: threads and CPUs, timer, protocol, caches */
  rge_case *cases;
  int num_cases, num_timed;
  bool has_peers;  /* a case of it has some */
  int suite_cases; /* that the suite has of this operator; 0: the suite is not known here */
  /* Over the timed cases, recomputed. 0 where none was timed. */
  double latency_us, floor_us, ratio, gigabytes_per_second; /* geometric means */
  double mean_latency_us, mean_floor_us;                    /* arithmetic means */
  double worst_ratio;
  const char *worst_case;
  rge_problems problems; /* of this entry; those of the whole record stand beside */
  rge_tier tier;
  const struct rge_entry *witness; /* the other run that lifted the tier; NULL: none */
} rge_entry;

struct rge_record {
  char *path;
  char *id; /* unique in its index, and safe in a file name and an address */
  char digest[RGE_DIGEST_BYTES];
  json_t *head; /* the record without its cases: suite, environment, protocol, summary */
  /* Out of it; "" where it is not known. */
  const char *suite, *suite_digest, *utc, *commit, *method, *protocol;
  bool warm;
  size_t bytes;
  rge_entry *entries;
  int num_entries;
  rge_problems problems;
};

/* Text of "environment" or "protocol"; NULL where it is not known. */
const char *rge_record_text(const rge_record *record, const char *part, const char *key);
/* Builds the record from the file, which has been checked against the schema (its problems are in record->problems
 * already). Adds problems of its own. False: no memory, or nothing usable in it; *why says which. Takes nothing from
 * *file but a reference. */
bool rge_record_read(const rge_file *file, const rge_suites *suites, rge_record *record, rgh_message *why);

void rge_record_free(rge_record *record);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_RECORD_H */
