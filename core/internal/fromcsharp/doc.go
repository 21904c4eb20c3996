// Package fromcsharp holds the examples of docs/from-csharp.md, which shows users of
// the C# library Mostlylucid.Ephemeral how the code of its documents reads in Go.
// There is nothing to import: the examples are in the test files, by theme.
package fromcsharp
