// Package file keeps the values of a [data.Store] in a directory, one file for each key.
//
//	orders, err := file.Open[string](ctx, "var", data.Options[Order]{Name: "orders"})
//	...
//	defer orders.Close()
//
// # What is durable
//
// Save returns when the value survives a power cut: it is written to a temporary file in the
// same directory, the file is synced, renamed, and the directory is synced. At every moment
// the file of a key has all of the old value or all of the new one. Windows cannot sync
// directories, so there a save that returned shortly before a power cut can be undone. All of this
// depends on a file system and a disk that keep what they have synced.
//
// SaveAll is not all or nothing: after a crash, or an error that is [data.ErrUndecided],
// some of its entries may be saved without the others.
//
// Another caller can load a value shortly before it is durable.
//
// # Files
//
// The store of the name "orders" in "var" is the directory var/store-orders. A file has the
// name k- and the key, in which bytes other than lower-case letters, digits, dashes and
// underscores are a percent sign and two hexadecimal digits: so keys of any bytes are
// different files on every file system. Where that would be longer than 140 bytes the name is
// h- and the SHA-256 of the key in hexadecimal digits. The first line of a file has a
// checksum, the length of the value and the key; the encoded value follows. A file that
// is damaged is an error that names it, until its key is saved again or deleted.
//
// # Processes
//
// Several processes may use a directory at once, and several stores in a process. Update is
// right between them. While files are replaced and removed, which takes microseconds, a
// process has the file "lock" locked (flock, LockFileEx); never remove that file. A call that
// waits for a stopped process ends with its context. Network file systems are not supported,
// nor are systems without such locks, on which Open returns [errors.ErrUnsupported].
//
// # Cost
//
// A save costs two syncs, of the file and of the directory, whatever the number of keys. An
// Update writes a file in vain if somebody else has changed the value meanwhile. Keys, All,
// Len and Clear read the whole directory, while writers wait. Keys and All also open the
// files whose names are hashes, and keep the keys in memory to sort them. Open reads the
// directory, too, and removes temporary files that killed processes left more than an hour
// ago. For many keys take atoms/data/sqlite.
package file
