// Package quorum waits until enough different voters have voted. A vote is a signal,
// and whoever casts it need not know that anybody counts:
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
// What counts is voters, not votes. A vote that an operation raised is that
// operation's, however often it votes. One raised directly on the sink is its
// key's: sink.RaiseKey("vote.bot", "lexical") is the vote of "lexical". A vote
// with neither is a voter of its own. Where the key says what is voted on, name it
// with [Options.Key], and the names of the votes tell the voters apart; any other
// way is a function, [Options.Voter].
//
// A vote that is taken back before the quorum is reached does not count. One that
// ages, is pushed out of the window or leaves it with its operation does.
//
// Votes count from the call on; those that were cast a little earlier count as far
// as [Options.Within] looks back. None is lost in between.
package quorum
