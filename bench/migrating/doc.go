// Package migrating has the examples of docs/migrating.md: how something is written
// with another library, and how with this one. An example of docs/from-csharp.md that needs
// several modules is here, too. They are compiled and run with the tests.
package migrating
