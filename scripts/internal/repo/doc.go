// Package repo reads a checkout of this repository into a plain model: its
// modules, their packages, the imports of every Go file and the version that is
// released next.
//
// It does not know the rules for these: they are in package policy, and package arch checks
// them. It reads from an [io/fs.FS], so that tests can use small broken trees.
package repo
