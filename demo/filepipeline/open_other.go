//go:build !unix

package filepipeline

// openNonblock is 0 here: these systems have no pipes among their files.
const openNonblock = 0
