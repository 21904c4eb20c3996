// Package migrating has the examples of docs/migrating.md: the same task with another
// library, and with this one. An example of docs/from-csharp.md that needs several modules
// is here, too. They are compiled and run with the tests.
package migrating
