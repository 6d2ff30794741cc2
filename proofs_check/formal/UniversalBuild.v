(* The graph of the universal program, for every number of symbols and states and every n.

   Function by function, in the order in which rasp's functions call the operations, as `Build` in Graph.v does for
   next_tokens. `TracedUniversal.v`, generated from Python, asks Coq to check that this is what Python traces. *)
From Coq Require Import List ZArith.
Import ListNotations.
Require Import Program Graph.

Module BuildUniversal.
Import Build.
Section Size.
Variables symbols states : nat.
Notation L := (4 + symbols + states).
Notation R := (5 + symbols + states).
Definition is_token (x t : nat) : builder nat := emit (Map (Bin Eq (Arg 0) (Const (Z.of_nat t))) [x]).
Definition mask (x b v : nat) : builder nat := filler <- emit (Full (Z.of_nat v)) ;; where_ b x filler.
Definition shift_or (d x n : nat) : builder nat :=
  i <- emit Indices ;; k <- emit (Map (plus n) [i]) ;; q <- emit Indices ;;
  s <- emit (Select [k] [q] equals) ;; emit (Aggr Mean s x (Z.of_nat d)).
Definition is_state : expr :=
  Bin And (Bin Lt (Arg 0) (Const (Z.of_nat (4 + symbols + states)))) (Bin Ge (Arg 0) (Const (Z.of_nat (4 + symbols)))).

Definition found := (nat * nat * nat * nat)%type.   (* is_head, next_state, next_symbol, move_R *)
Definition look_up (x cells : nat) : builder found :=
  l <- is_token x L ;; r <- is_token x R ;; is_rule <- bor l r ;;
  four <- shift_right x 4 ;; rule_state <- mask four is_rule 0 ;; rule_symbol <- shift_right x 3 ;;
  under <- shift_right cells 1 ;; s <- select_all rule_state cells [(rule_symbol, under)] ;;
  is_head <- emit (Map is_state [cells]) ;;
  two <- shift_right x 2 ;; next_state <- emit (Aggr Max s two 0) ;;
  one <- shift_right x 1 ;; next_symbol <- emit (Aggr Max s one 0) ;;
  right <- is_token x R ;; move_R <- emit (Aggr Max s right 0) ;;
  ret (is_head, next_state, next_symbol, move_R).
Definition shifted (r : found) (p : nat) : builder found :=
  let '(h, q, a, m) := r in
  h <- shift_right h p ;; q <- shift_right q p ;; a <- shift_right a p ;; m <- shift_right m p ;; ret (h, q, a, m).
Definition get_next (cells : nat) (r : found) (place : nat) : builder (nat * nat * nat) :=
  here <- shifted r place ;; right <- shifted r (place - 1) ;; c <- shift_right cells place ;;
  let '(h, q, a, m) := here in let '(rh, rq, ra, rm) := right in
  x_next <- where_ h q c ;; x_next <- where_ rh ra x_next ;; move <- band m h ;; ret (h, x_next, move).
Definition next_tape (cells : nat) (r : found) (s : nat) : builder nat :=
  cur <- get_next cells r s ;; right <- get_next cells r (s - 1) ;; move_head cur right.
Fixpoint last_tokens (x start over back many : nat) : builder (list nat) :=
  match many with
  | 0 => ret []
  | S many => new <- shift_or 1 start back ;; over <- bor over new ;; filler <- emit (Full 0) ;;
      t <- shift_right x back ;; t <- where_ over filler t ;; ts <- last_tokens x start over (S back) many ;; ret (t :: ts)
  end.
Definition tape_n_gram (x n : nat) : builder (list nat) :=
  start <- is_token x 0 ;; over <- emit (Full 0) ;; last_tokens x start over 0 (n + 1).
Definition next_tokens_on (n x : nat) (masked : nat -> builder nat) : builder nat :=
  s <- is_token x 0 ;; line <- cumsum s ;; seen <- emit (Map (Bin Gt (Arg 0) (Const 0)) [line]) ;;
  cells <- masked seen ;; rule <- look_up x cells ;; tape <- next_tape cells rule 2 ;;
  late <- next_tape cells rule 3 ;; key_tape <- prefix_fill late 2 3 ;;
  ks <- is_token key_tape 0 ;; key_line <- cumsum ks ;;
  keys <- tape_n_gram key_tape n ;; queries <- tape_n_gram cells n ;;
  s <- select_all key_line line (combine keys queries) ;; emit (Aggr Max s tape 0).
Definition next_tokens_universal (n x : nat) : builder nat := next_tokens_on n x (fun seen => mask x seen 3).
End Size.
End BuildUniversal.
Definition universal_graph (symbols states n : nat) : graph :=
  fst (Build.graph_of 1 (BuildUniversal.next_tokens_universal symbols states n 0)).
