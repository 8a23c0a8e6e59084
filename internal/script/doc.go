// Package script runs packet scripts: what a peer injects into a listening Stack (<), what must come back (>), and system calls (!), on a
// virtual clock over one IP path. It does not open connections itself, drive the kernel or run in programs: it is for tests.
package script
