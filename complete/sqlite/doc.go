// Package sqlite is the part of package complete for storage and durable work in SQLite.
// It has what atoms/sqlitewriter, atoms/data/sqlite, atoms/durable/sqlite and
// patterns/persistentwindow export, under the names that they would have in package
// complete. It is a separate package, so that programs that import complete do not link
// SQLite.
package sqlite
