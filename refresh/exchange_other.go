//go:build !linux

package refresh

// swapFolders exchanges two folders, or renames the first where there is no second.
func swapFolders(from, to string) error { return renameOver(from, to) }
