//! Loops: streams that wait for each other, directly or through others.

/// Which component each of `nodes` is in, numbered in an order in which edges go forward, and how many
/// members each component has.
///
/// Kosaraju's algorithm, without recursion.
pub(crate) fn components(nodes: usize, edges: &[(usize, usize)]) -> (Vec<usize>, Vec<usize>) {
    let mut out = vec![Vec::new(); nodes];
    let mut back = vec![Vec::new(); nodes];
    for &(from, to) in edges {
        out[from].push(to);
        back[to].push(from);
    }
    let mut seen = vec![false; nodes];
    let mut finished = Vec::new();
    for start in 0..nodes {
        walk(start, &out, &mut seen, &mut finished);
    }
    let mut component = vec![usize::MAX; nodes];
    let mut sizes = Vec::new();
    let mut seen = vec![false; nodes];
    for &start in finished.iter().rev() {
        let mut members = Vec::new();
        walk(start, &back, &mut seen, &mut members);
        if members.is_empty() {
            continue;
        }
        for &member in &members {
            component[member] = sizes.len();
        }
        sizes.push(members.len());
    }
    (component, sizes)
}

/// Visits what can be reached and was not seen yet; a node is given after all that it reaches.
fn walk(start: usize, out: &[Vec<usize>], seen: &mut [bool], finished: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    let mut path = vec![(start, 0)];
    while let Some((node, next)) = path.last_mut() {
        if let Some(&to) = out[*node].get(*next) {
            *next += 1;
            if !std::mem::replace(&mut seen[to], true) {
                path.push((to, 0));
            }
        } else {
            finished.push(*node);
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn members_of_a_loop_share_a_component_and_edges_go_forward() {
        let (component, sizes) = components(5, &[(0, 1), (1, 2), (2, 1), (2, 3)]);
        assert_eq!(component[1], component[2]);
        assert_eq!(sizes[component[1]], 2);
        assert!(component[0] < component[1] && component[2] < component[3]);
        assert_eq!(sizes[component[4]], 1);
    }
}
