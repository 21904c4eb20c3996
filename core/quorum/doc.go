// Package quorum waits until enough different voters have voted, where a vote is a signal.
// The code that raises it need not know that votes are counted:
//
//	result, err := quorum.Wait(ctx, sink, "vote.bot", 2, quorum.Options{
//		CancelOn: "verdict.*",
//		Timeout:  3 * time.Second,
//	})
//	if err != nil {
//		return err
//	}
//	if result.Reached {
//		sink.Raise("verdict.bot")
//	}
//
// Wait counts voters, not votes. The voter of a signal is the operation that raised it,
// however often it votes. Each vote raised directly on the sink is its own voter. If
// the key says what the vote is about, set [Options.Key]. Then only votes with that key
// count, and a vote raised directly on the sink has its name as its voter. For any
// other rule use [Options.Voter]: with a function that returns the key,
// sink.RaiseKey("vote.bot", "lexical") is the vote of "lexical".
//
// A vote that is retracted before the quorum is reached does not count. A vote still
// counts when it has left the sink's window, by age, by number or with its operation.
//
// Votes count from the call on. With [Options.Within], earlier votes count as well. No vote
// is lost between the two.
package quorum
