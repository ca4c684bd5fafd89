/* SPDX-License-Identifier: Apache-2.0 */
/* What GNUstep's headers include when blocks are on. The compiler's blocks runtime brings the functions; GCC's Objective-C has no such header. */
#ifndef VALET_GNUSTEP_BLOCKS_RUNTIME_H
#define VALET_GNUSTEP_BLOCKS_RUNTIME_H

void *_Block_copy(const void *block);
void _Block_release(const void *block);

#define Block_copy(block) ((__typeof__(block))_Block_copy((const void *)(block)))
#define Block_release(block) _Block_release((const void *)(block))

#endif
