// Package sqlite shows what the modules that link SQLite export, under the names that they
// would have in package complete: atoms/sqlitewriter, atoms/data/sqlite and
// patterns/persistentwindow. It is a separate package, so that programs that import
// complete do not link SQLite.
package sqlite
