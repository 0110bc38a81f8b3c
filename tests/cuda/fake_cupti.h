/* fake_cupti.h: a CUPTI in plain C that records nothing: it hands out the activities that a test has written down. Built as
 * a library of its own, which ROPEGRAD_CUPTI names. */
#ifndef ROPEGRAD_TESTS_CUDA_FAKE_CUPTI_H
#define ROPEGRAD_TESTS_CUDA_FAKE_CUPTI_H

#include <stddef.h>

#include "harness/timing/activity.h"

enum { FAKE_MAX_ACTIVITIES = 8 };

typedef struct fake_cupti {
  int enabled; /* kinds of activity */
  /* What the next flushes hand out: `at_once` of them, then one each. */
  rgh_activity activity[FAKE_MAX_ACTIVITIES];
  int count, at_once, handed_out;
  int flushes;
  size_t dropped;
  bool cannot_flush;
} fake_cupti;

/* The state, looked up with dlsym as "fake_cupti_state". */
extern fake_cupti fake_cupti_state;

#endif
