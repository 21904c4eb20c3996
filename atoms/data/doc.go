// Package data keeps values under keys: one interface, [Store], and an [Engine] for each
// place where the bytes can be. There are atoms/data/file, atoms/data/sqlite and
// atoms/data/postgres; an engine of your own can be checked by package datatest.
package data
