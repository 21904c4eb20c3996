// Package persistentwindow stores the signals of a [core.Sink] in SQLite, and puts them back
// when the program starts again: its window survives restarts.
//
//	window, err := persistentwindow.Open(ctx, w, sink, persistentwindow.Options{})
//	...
//	defer window.Close() // writes what is not written
//
// # What is stored
//
// A window notes every signal of the sink, those present at Open too, and writes them every
// FlushInterval, by Flush and by Close. The loss window is what was raised since the last
// flush: a crash loses it, and a flush that has returned nil is on the disk. Raising never
// waits for the disk.
//
// Name, key, time, source, operation and causes are stored. So is the payload if its kind is
// among [Options.Kinds]; other payloads are left out. A signal that is retracted is deleted
// from the file, unless that happens while it is being raised. Not stored are held facts,
// because what holds them ends with the process; signals of windows and of sqlitewriter,
// which flushes raise; and signals that were restored.
//
// # What is restored
//
// Open puts the newest signals of at most MaxAge back, as far as the sink has room, with
// [core.Sink.Restore]: no handler is called and monitors do not count them, but gates such as
// CancelOn see them. The sink leaves out those beyond its own age, which is 5 minutes unless
// its options say more. Restore before you raise: the times of restored signals are not
// before those of signals that are there.
//
// Ids of operations begin again in each process. So a restored signal has Operation 0, and a
// Source that says where it comes from: [OriginOf] reads that. No query for an operation or
// a source of the running process finds it.
//
// # Identity
//
// A signal is stored under a boot, a random number for each sink in a process, and its Seq.
// So nothing is stored twice, whether a commit is repeated of which nobody knows whether it
// succeeded, or windows are opened on a sink and a file again. A signal is restored at most once
// to a sink.
package persistentwindow
