// Package sqlitewriter writes to SQLite files from many goroutines and many processes. Writes
// that come at the same time share a transaction, so that they share its sync of the disk.
//
//	w, err := sqlitewriter.Open(ctx, "app.db", sqlitewriter.Options{})
//	if err != nil {
//		return err
//	}
//	defer w.Close()
//	...
//	_, err = w.Exec(ctx, "insert into log(text) values(?)", "hello") // returns when it is on the disk
//	...
//	user, err := sqlitewriter.Read(ctx, w, "user:42", loadUser) // from memory if it was read before
//
// # Writes
//
// Exec runs a statement, Batch several of which all are committed or none is, and Tx a function
// that also reads. All of them return when the commit is on the disk, or with an error when
// nothing is stored. They go through one queue, in order. The statements that wait make a
// group, which is one transaction; a function has one of its own. A statement that fails does
// not affect the others of its group: these are run again without it, in the same order.
//
// Foreign keys are checked. A time is stored as text that SQLite's functions read. Settings of
// the connection that writes are the writer's: a statement that would change them is refused.
//
// If the disk fails during a commit, the error is all that is known: the write may be stored.
// The connection is opened again. A full disk is not such a failure: see [ErrNoSpace].
//
// # Processes
//
// SQLite lets one process write at a time, but does not make them take turns: a process that
// waits asks again after a while, and one that writes all the time wins. So a writer holds a
// lock file, PATH.lock, while a transaction runs. Processes that use this package get their
// turns about equally often. For other programs there is SQLite's own lock and
// [Options.BusyTimeout]. The lock files stay; do not delete them while a process runs. They
// need a local file system, as SQLite's log does.
//
// # Reads
//
// [Writer.DB] is a pool of connections that only read. [Read] keeps what it has read until it
// is invalidated or expires. Invalidation is exact: after a write that names a key has
// returned, no Read of this process returns an older value, also if its load had begun before.
//
// # Shutting down
//
// At the end call Drain with a deadline, then Close. The last Close of a file writes SQLite's
// log into the file. An open file has two goroutines, which belong to database/sql, and one
// more while there are writes. The functions of Tx have a goroutine each until they return.
package sqlitewriter
