// Package persistentwindow stores the signals of a sink in SQLite, and puts them back when the
// program starts again. So the window of the [signals.Sink] survives a restart.
//
//	window, err := persistentwindow.Open(ctx, w, sink, persistentwindow.Options{})
//	...
//	defer window.Close() // writes the signals that are not written yet
//
// # What is stored
//
// A window records every signal of the sink, including the signals that are there when it opens. A
// flush writes them to the file: every FlushInterval, on Flush and on Close. A crash loses the
// signals since the last flush. When Flush has returned nil, the signals are on the disk. Raising
// a signal never waits for the disk.
//
// A row has the name, key, time, source, operation and causes of a signal, and its payload if the
// kind is in [Options.Kinds]. If a signal is retracted (see [signals.Sink.Retract]), its row is
// deleted. This does not hold if a handler retracts the signal while it is being raised. These
// signals are not stored:
//
//   - held signals (see [signals.Sink.Hold]), because their holders end with the process;
//   - the signals of windows and of sqlitewriter, because each flush raises some;
//   - signals that were restored, because they are in the file already.
//
// # What is restored
//
// Open restores signals that are not older than MaxAge. If the sink has no room for all, Open
// restores the newest ones. The sink leaves out signals that are older than its own MaxAge, which
// is 5 minutes by default. No handler is called, and monitors do not count restored signals, but
// gates such as CancelOn see them: see [signals.Sink.Restore]. Open the window before you raise
// signals. Otherwise a restored signal gets the time of the newest signal on the sink, and stays
// there longer.
//
// Ids of operations begin again in each process. So a restored signal has Operation 0. Its Source
// says where the signal was raised, and [OriginOf] reads it. A query for an operation or a source
// of the running process does not find restored signals.
//
// # Identity
//
// Each sink of a process has a random number, the boot. A signal is stored under the boot and its
// Seq. So no signal is stored twice, even if a flush repeats a commit whose result is unknown, or
// if several windows have the same sink and file. A signal is restored to a sink at most once.
package persistentwindow
