// Package persistentwindow stores the signals of a [core.Sink] in SQLite, and puts them back when
// the program starts again. So the window of the sink survives a restart.
//
//	window, err := persistentwindow.Open(ctx, w, sink, persistentwindow.Options{})
//	...
//	defer window.Close() // writes what is not written yet
//
// # What is stored
//
// A window notes every signal of the sink, also those that are there when it opens. It writes
// them every FlushInterval, on Flush and on Close. A crash loses the signals since the last
// flush. When Flush has returned nil, the signals are on the disk. Raising never waits for the
// disk.
//
// Stored are name, key, time, source, operation and causes, and the payload if its kind is in
// [Options.Kinds]. If a signal is retracted, its row is deleted, unless the retraction comes while
// the signal is still being raised. Not stored are:
//
//   - held facts, because what holds them ends with the process;
//   - the signals of windows and of sqlitewriter, because each flush raises some;
//   - signals that were restored, because they are in the file already.
//
// # What is restored
//
// Open restores signals of at most MaxAge, the newest ones if the sink has no room for all. It
// uses [core.Sink.Restore]: no handler is called and monitors do not count them, but gates
// such as CancelOn see them. The sink leaves out signals that are older than its own MaxAge,
// which is 5 minutes by default. Open the window before you raise signals: a restored signal
// never gets a time before that of a signal that is there.
//
// Ids of operations begin again in each process. So a restored signal has Operation 0, and its
// Source says where the signal was raised: [OriginOf] reads the Source. A query for an
// operation or a source of the running process does not find it.
//
// # Identity
//
// A boot is a random number for a sink in a process. A signal is stored under the boot and its
// Seq. So no signal is stored twice, even if the window repeats a commit whose result is
// unknown, or if several windows have the same sink and file. A signal is restored to a sink
// at most once.
package persistentwindow
