// Package sqlitewriter writes to SQLite files from many goroutines and many processes. Writes
// that wait at the same time share one transaction and one sync of the disk.
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
// Exec runs one statement. Batch runs several: all of them are committed, or none is. Tx calls a
// function that can also read. Each of the three returns nil when the commit is on the disk. If
// it returns an error, nothing is stored, with one exception below.
//
// All writes go through one queue, in order. The statements that wait form a group, and a group
// is one transaction. The function of a Tx has a transaction of its own. If a statement fails,
// the transaction is rolled back. Then each write of the group gets its own transaction, in the
// same order. So a failure makes other writes slower, and has no other effect on them.
//
// The writer checks foreign keys. It stores a time as text that SQLite's functions can read. The
// settings of the connection belong to the writer: it refuses statements that would change them.
// Write names of pragmas in lower case.
//
// If the disk fails during a commit, nobody knows whether the write is stored. The error then
// wraps ErrUndecided of core/groupcommit. The writer does not try again, and opens the connection again
// at the next write. A full disk is a different case: see [ErrNoSpace].
//
// # Processes
//
// SQLite lets one process write at a time. Without a turn order, one busy process can keep the
// others out. So a writer locks a file, PATH.lock, during each transaction. Processes that use
// this package get about the same number of turns. For other programs SQLite's own lock holds,
// see [Options.BusyTimeout]. The lock file stays: do not delete it while a process runs. Lock
// file and database must be on a local file system. Do not open one database by two hard
// links.
//
// # Reads
//
// [Writer.DB] is a pool of connections that only read. [Read] keeps values in memory until they
// are invalidated or expire. Invalidation is exact within the process: after a write that names a
// key has returned, no Read returns an older value, even if its load began before the write.
//
// # Shutting down
//
// Call Drain with a deadline, then Close. When the last handle of a file is closed, SQLite moves
// its log into the file. An open file has two goroutines of database/sql, and a few more while it
// writes. A goroutine that waits for the lock of another process cannot be stopped: it stays
// until it gets the lock, and releases it at once.
package sqlitewriter
