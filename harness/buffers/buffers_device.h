/* buffers_device.h: the half of a buffer that lies on a device. For buffers.c alone; each of these does nothing where
 * the tensors lie on the host. */
#ifndef ROPEGRAD_HARNESS_BUFFERS_BUFFERS_DEVICE_H
#define ROPEGRAD_HARNESS_BUFFERS_BUFFERS_DEVICE_H

#include "harness/buffers/buffers.h"

/* Allocates as much as the host's half has and sets the guards. */
bool rgh_device_create(rgh_buffers *buffers, int tensor, rgh_message *why);
void rgh_device_destroy(rgh_buffers *buffers, int tensor);

/* Uploads the body, and keeps a copy of it on the device where the host keeps one. */
void rgh_device_send(rgh_buffers *buffers, int tensor);
/* Puts the kept copy back. */
void rgh_device_restore(rgh_buffers *buffers, int tensor);
/* Fills the body with poison. */
void rgh_device_poison(rgh_buffers *buffers, int tensor);

#endif /* ROPEGRAD_HARNESS_BUFFERS_BUFFERS_DEVICE_H */
