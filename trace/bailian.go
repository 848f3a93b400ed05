package trace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"

	"tailgate/internal/fault"
)

// chat ties a row to its conversation.
type chat struct{ id, parent string }

// noParent marks the first turn of a conversation.
const noParent = "-1"

// readBailian reads Qwen-Bailian traces: seconds, blocks of 16 tokens, turns from 1 that name their parent. The
// conversation of a row is named by its first turn, also where the file holds only later turns of it. Ids are
// taken as they are: the publisher does not say that a block's id covers what lies before it.
func readBailian(ctx context.Context, in *bufio.Reader, s source, to taker) error {
	all := &gather{}
	err := readLines(ctx, in, s, func() *rowBuilder {
		b := newRowBuilder(s, &bailianNames)
		b.out.allTold = true
		b.after = b.addChat
		return b
	}, all)
	if err != nil {
		return err
	}
	all.told = nil
	if err := all.linkChats(s.name); err != nil {
		return err
	}
	return errors.Join(to.prepare(&all.raw), to.take(&all.raw))
}

// addChat takes the row's place in its conversation.
func (b *rowBuilder) addChat() error {
	out := b.out
	last := len(out.rows) - 1
	if !b.has[keyChat] {
		out.rows, out.lines, out.told = out.rows[:last], out.lines[:last], nil
		out.big = slices.DeleteFunc(out.big, func(b bigRef) bool { return b.row == last })
		return errors.New("chat_id is missing")
	}
	c := chat{id: string(b.text[keyChat]), parent: noParent}
	if b.has[keyParentChat] {
		c.parent = string(b.text[keyParentChat])
	}
	out.chats = append(out.chats, c)
	out.rows[last].Turn = max(out.rows[last].Turn-1, 0)
	return nil
}

// linkChats sets the parents and names the sessions.
func (r *raw) linkChats(name string) error {
	chats := r.chats
	place := make(map[string]int64, len(chats))
	twice := 0
	for i, c := range chats {
		if _, ok := place[c.id]; ok {
			twice++
			continue
		}
		place[c.id] = int64(i)
	}
	if twice > 0 {
		r.note("%d rows repeat a chat_id: later turns are tied to its first row", twice)
	}
	orphans := 0
	strings := newIntern()
	places := make([]int64, len(chats))
	roots := make([]*string, len(chats))
	var path []int
	for i := range chats {
		at, root := i, (*string)(nil)
		for path = path[:0]; root == nil; {
			if path = append(path, at); len(path) > len(chats) {
				return fault.Mark(fmt.Errorf("reading trace %s:%d: chat %s is its own ancestor", name, r.lines[i], chats[i].id), fault.Data, "")
			}
			c := chats[at]
			next, ok := place[c.parent]
			switch {
			case c.parent == noParent:
				root = strings.get([]byte(c.id))
			case !ok:
				root = strings.get([]byte(c.parent))
			default:
				at, root = int(next), roots[next]
			}
		}
		for _, at := range path {
			roots[at] = root
		}
		r.rows[i].Session = root
		if chats[i].parent == noParent {
			continue
		}
		if at, ok := place[chats[i].parent]; ok {
			places[i] = at
			r.rows[i].Parent = &places[i]
		} else {
			orphans++
		}
	}
	if orphans > 0 {
		r.note("%d rows follow a turn that is not in the file", orphans)
	}
	return nil
}
