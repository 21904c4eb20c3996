// Package repo reads a checkout of this repository into a plain model: its
// modules, their packages, the imports of every Go file and the version that is
// released next.
//
// It knows how the tree is written, not how it should be: the rules are in
// package policy, and package arch checks them. It reads through an [io/fs.FS],
// so that a test can hand it a small broken tree.
package repo
