// Package responsibility keeps operations in their coordinator's window until they are
// acknowledged.
//
// A finished operation stays visible for a while and then leaves the window. That is too
// soon if another part of the program still has to fetch its result. A pin keeps it, but
// has to be removed in the end. A [Keeper] connects the pin with a promise, "this stays
// until you have seen it", which ends when a signal acknowledges it:
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
//	sink.Subscribe("file.ready", func(s signals.Signal) {
//		...
//		sink.RaiseKey("file.ready.ack", s.Key)
//	})
//
// The announcement and the acknowledgement are signals with the same key, so the two parts
// of the program need not know each other. The announcement is raised when the operation
// is pinned and the Keeper is subscribed: a handler of it finds the operation, and may
// acknowledge at once.
//
// A promise ends once, in one of these ways. Then the operation is unpinned:
//
//	kept -> acknowledged                responsibility.released
//	     -> Complete                    responsibility.released
//	     -> the operation left anyway   responsibility.released
//	     -> Close                       responsibility.released
//	     -> MaxPin is over              responsibility.expired
//
// An operation leaves anyway when it is evicted by hand or its coordinator is closed.
// Pins are counted: the Keeper removes only its own.
package responsibility
