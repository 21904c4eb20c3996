//go:build !unix

package filepipeline

// openNonblock is nothing here: these systems keep no pipes among their files.
const openNonblock = 0
