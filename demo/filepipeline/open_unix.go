//go:build unix

package filepipeline

import "syscall"

// openNonblock keeps open(2) from waiting for a writer when the file turns out to be a named pipe.
const openNonblock = syscall.O_NONBLOCK
