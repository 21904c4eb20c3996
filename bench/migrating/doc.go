// Package migrating has the examples of docs/migrating.md: how something is written
// with another library, and how with this one. They are compiled and run with the
// tests.
package migrating
