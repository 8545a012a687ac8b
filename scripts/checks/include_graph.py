"""Folders point one way: cycles of folders, at every level of the tree."""

import collections
import functools

from . import tree


def components(edges):
    """The strongly connected components of two or more nodes, each sorted. Tarjan 1972."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def folder_edges(place):
    """Which of the places (a function of a file's name) include from which."""
    edges = collections.defaultdict(set)
    for name in tree.sources(*tree.PRODUCT):
        for _, included in tree.includes(name):
            here, there = place(name), place(included)
            if here and there and here != there:
                edges[here].add(there)
    return edges


@functools.cache
def cycles():
    """Folders, by their own files, that reach each other: a sorted list for each cycle."""
    return components(folder_edges(tree.folder))


def sibling_cycles():
    """Folders of one parent, each with all that is below, that reach each other."""
    parents = {"/".join(name.split("/")[:depth])
               for name in tree.sources(*tree.PRODUCT) for depth in range(name.count("/"))}
    found = []
    for parent in sorted(parents):
        depth = parent.count("/") + 2 if parent else 1

        def place(name, parent=parent, depth=depth):
            below = name.split("/")
            inside = not parent or name.startswith(parent + "/")
            return "/".join(below[:depth]) if inside and len(below) > depth else None
        found += components(folder_edges(place))
    return found


def findings():
    """A line for each include of a folder that includes back, straight or round about."""
    edges = folder_edges(tree.folder)
    lines = {f"cycle: {here} includes from {there}"
             for cycle in cycles() for here in cycle for there in edges[here] if there in cycle}
    lines |= {f"cycle: {', '.join(cycle)} include from each other, with what is below them"
              for cycle in sibling_cycles()}
    return sorted(lines)


def lines_in_cycles():
    """Lines of code in folders that are part of a cycle."""
    inside = {folder for cycle in cycles() for folder in cycle}
    return sum(tree.text(name).count("\n") for name in tree.sources(*tree.PRODUCT)
               if tree.folder(name) in inside)
