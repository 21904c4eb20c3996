// Package migrating has tasks with another library (Before) and with this one (After), of
// which docs/migrating.md shows the second. An example of docs/from-csharp.md that needs
// several modules is here, too. They are compiled and run with the tests.
package migrating
