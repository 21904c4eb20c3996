// Package responsibility keeps operations in their coordinator's window until
// somebody has taken note of them.
//
// An operation that has finished stays visible for a while and then leaves by
// itself. That is too soon for a result that another part of the program still has
// to fetch, and pinning it by hand is too long: somebody has to remember to unpin.
// A [Keeper] ties the pin to a promise, "I answer for this until you have seen it",
// which ends when it is acknowledged:
//
//	keeper, err := responsibility.New(uploads, sink, responsibility.Options{})
//	if err != nil {
//		return err
//	}
//	defer keeper.Close()
//
//	// in the body of the upload
//	keeper.Keep(core.OperationFrom(ctx).ID(), responsibility.Promise{
//		Announce:    "file.ready",
//		Key:         file.ID,
//		Description: "saved, waits to be indexed",
//	})
//
//	// wherever the file is wanted
//	sink.Subscribe("file.ready", func(s core.Signal) {
//		...
//		sink.RaiseKey("file.ready.ack", s.Key)
//	})
//
// The announcement and the acknowledgement are signals with the same key, so who
// keeps and who takes note need not know each other. The announcement is made when
// the operation is pinned and the acknowledgement is listened for: whoever reacts to
// it finds the operation, and is heard.
//
// A promise ends once, in one of these ways, and the operation is then unpinned:
//
//	kept -> acknowledged                responsibility.released
//	     -> Complete                    responsibility.released
//	     -> the operation left anyway   responsibility.released
//	     -> Close                       responsibility.released
//	     -> MaxPin is over              responsibility.expired
//
// An operation leaves anyway when it is evicted by hand or its coordinator is closed.
// Pins are counted: one that somebody else has set is not touched.
package responsibility
