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
// A write is a call of Exec, Batch or Tx. Exec runs SQL. Batch runs several statements: all of
// them are committed, or none is. Tx calls a function that can also read. A write returns nil when
// its commit is on the disk. If a write returns an error, nothing is stored. ErrUndecided is the
// only exception, see below.
//
// All writes of a process to a file go through one queue, in the order of the calls. The writes
// that wait form a group, and a group shares one transaction. A Tx has its own transaction. If a
// write of a group fails, the transaction is rolled back. Then each write of the group gets its
// own transaction, in the same order. The failure makes the other writes slower. It has no other
// effect on them.
//
// The writer checks foreign keys. It stores a time.Time as text that SQLite's functions can read.
// It refuses pragmas with a value, because they can change settings of its connection. Allowed are
// user_version, application_id, defer_foreign_keys, and pragmas that only read, such as table_info.
// Neither vacuum nor the pragma wal_checkpoint can run in a transaction, so the writer refuses them: see [Writer.Checkpoint].
//
// If the context of a caller ends while its write waits for its turn, or for another program, the
// call returns the cause of the context, and nothing is stored. When the transaction has begun, the
// call waits for its end.
//
// If the disk fails during a commit, it is not known whether the write is stored. The error then
// wraps ErrUndecided of core/groupcommit. The writer does not repeat the write. It opens a new
// connection for the next one. If the disk is full, nothing is stored: see [ErrNoSpace].
//
// # Processes
//
// SQLite lets one process write at a time, in no fixed order, so one busy process can keep the
// others out. To prevent that, a writer locks the lock file, PATH.lock, during each transaction.
// Processes that use this package get about the same number of turns. For other programs, see
// [Options.BusyTimeout]. If the file is deleted, renamed or replaced while it is open, writes return
// [ErrMoved]; reads go on in the old file. The lock file is never removed: do not delete it while a process uses
// the database. Both files must be on a local file system. Do not open a database by two hard
// links.
//
// # Reads
//
// [Writer.DB] is a pool of connections that only read. [Read] keeps values in memory until they
// are invalidated or expire. After a write that names a key has returned, a new Read of the key
// in this process gets no older value, even if a load of the key was running during the write.
//
// # Shutting down
//
// Call Drain with a deadline, then Close. When the last handle of a file is closed, SQLite moves
// its log into the file. An open file has two goroutines of database/sql, and a few more while it
// writes. A goroutine that waits for another process to release the lock cannot be stopped. After
// Close it stays until it gets the lock, releases the lock at once, and ends.
package sqlitewriter
