// Package file stores values by key in a directory, one file for each key. [Open] returns
// a [data.Store]:
//
//	orders, err := file.Open[string](ctx, "var", data.Options[Order]{Name: "orders"})
//	...
//	defer orders.Close()
//
// # What is durable
//
// When Save has returned, the value survives a power cut. Save writes a temporary file in the same
// directory, syncs it, renames it, and syncs the directory. So the file of a key always has all of
// the old value or all of the new one. Windows cannot sync directories: there a power cut can undo
// the last saves. The file system and the disk must keep what they have synced.
//
// SaveAll is not all or nothing. After a crash, or an error that is [data.ErrUndecided], some of
// its entries may be saved and others not.
//
// A caller may load a new value a moment before it is durable.
//
// # Files
//
// The store "orders" in "var" is the directory var/store-orders. The name of a file is k- and the
// key. Lower-case letters, digits, dashes and underscores of the key stay; any other byte becomes a
// percent sign and two hexadecimal digits. So different keys have different files on every file
// system. If this name would have more than 140 bytes, the name is h- and the SHA-256 of the key in
// hexadecimal digits. The first line of a file has a checksum, the length of the value and the key.
// The encoded value follows. If a file is damaged, or is no regular file, calls return an error that
// names it, until its key is saved again or deleted. If the directory is deleted while the store is
// open, all calls return errors.
//
// Open creates directories with the mode 0700. New files get the permissions of the store's
// directory, without execution and whatever the umask is: 0600, or 0660 if the directory has 0770.
//
// # Processes
//
// Several processes may use a directory at once, and so may several stores in one process. Update
// loses no change between them. A process locks the file "lock" (flock, LockFileEx) to rename or
// remove files, some microseconds for each, and to list the directory. Never remove that file. If a
// process is stopped while it has the lock, calls of other processes wait until their contexts end.
// Network file systems are not supported. On systems without such locks, Open returns
// [errors.ErrUnsupported].
//
// # Cost
//
// Save costs two syncs: one of the file and one of the directory. If another caller changes a value
// during an Update, the Update writes one more file. Keys, All, Len and Clear list the whole
// directory; meanwhile the writers of all processes wait. Keys and All also open the files whose
// names are hashes, and keep all keys in memory to sort them. Open lists the directory, too, and
// removes temporary files that are older than an hour: killed processes have left them. For many
// keys, use atoms/data/sqlite.
package file
