(* The program as Python traces it: a list of nodes, each an operation on earlier nodes, and what running it means.

   `Traced.v`, generated from Python, holds the graphs as traced; `Build` makes the same graphs for every n, function by
   function, in the order in which rasp's functions call the operations. A graph runs on a list of tokens, node by node, on
   integers; what becomes of a sum or product that is too large is left open (`wrap`): nothing, or 64-bit wrap-around.
   The number of nodes is linear in n (`size_linear`). *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Program.

(* ---- functions of numbers, and nodes ----------------------------------------------------------------------------- *)
Inductive operator := Add | Sub | Mul | And | Or | Eq | Ne | Lt | Le | Gt | Ge.
Inductive table := NextState | NextSymbol | Move.
Inductive expr :=
  | Arg (i : nat)                        (* argument i *)
  | Const (c : Z)
  | Power (n : nat)                      (* base ** n *)
  | Bin (o : operator) (a b : expr)
  | Invert (a : expr)                    (* ~a *)
  | Not (a : expr)
  | If (c a b : expr)
  | IsState (a : expr)
  | Look (t : table) (a b : expr).       (* a table of the machine *)
Inductive reduction := Mean | Max | Min.
Inductive node :=
  | Input (i : nat)
  | Full (c : Z)
  | Indices
  | Map (e : expr) (args : list nat)
  | Select (keys queries : list nat) (e : expr)
  | Width (selector : nat)
  | Aggr (r : reduction) (selector v : nat) (default : Z).
Definition graph := list node.

(* ---- running a graph --------------------------------------------------------------------------------------------- *)
Section Run.
Variable wrap : Z -> Z.
Variable B : nat.
Variable st : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Local Open Scope Z_scope.

Definition truth (b : bool) : Z := if b then 1 else 0.
Definition operate (o : operator) (a b : Z) : Z :=
  match o with
  | Add => wrap (a + b) | Sub => wrap (a - b) | Mul => wrap (a * b)
  | And => Z.land a b | Or => Z.lor a b
  | Eq => truth (a =? b) | Ne => truth (negb (a =? b))
  | Lt => truth (a <? b) | Le => truth (a <=? b) | Gt => truth (b <? a) | Ge => truth (b <=? a)
  end.
Definition look (t : table) (a b : Z) : Z :=
  let q := Z.to_nat a in let s := Z.to_nat b in
  match t with NextState => Z.of_nat (ns q s) | NextSymbol => Z.of_nat (ny q s) | Move => truth (mv q s) end.
Fixpoint ev (args : list Z) (e : expr) : Z :=
  match e with
  | Arg i => nth i args 0
  | Const c => c
  | Power n => Z.of_nat B ^ Z.of_nat n
  | Bin o a b => operate o (ev args a) (ev args b)
  | Invert a => Z.lnot (ev args a)
  | Not a => truth (ev args a =? 0)
  | If c a b => if ev args c =? 0 then ev args b else ev args a
  | IsState a => truth (st (Z.to_nat (ev args a)))
  | Look t a b => look t (ev args a) (ev args b)
  end.

Inductive value := Numbers (l : list Z) | Chosen (l : list (list nat)).
Definition numbers (env : list value) (i : nat) : list Z := match nth_error env i with Some (Numbers l) => l | _ => [] end.
Definition chosen (env : list value) (i : nat) : list (list nat) :=
  match nth_error env i with Some (Chosen l) => l | _ => [] end.
Definition reduce (r : reduction) (d : Z) (l : list Z) : Z :=
  match l with
  | [] => d
  | z :: rest => match r with
                 | Mean => Z.quot (fold_right Z.add 0 l) (Z.of_nat (length l))
                 | Max => fold_right Z.max z rest
                 | Min => fold_right Z.min z rest
                 end
  end.

Variable x : list (list Z).              (* the inputs *)
Definition long : nat := length (nth 0 x []).
Definition places : list nat := seq 0 long.
Definition at_place (q : nat) (ls : list (list Z)) : list Z := map (fun l => nth q l 0) ls.
Definition value_of (env : list value) (nd : node) : value :=
  match nd with
  | Input i => Numbers (nth i x [])
  | Full c => Numbers (map (fun _ => c) places)
  | Indices => Numbers (map Z.of_nat places)
  | Map e args => let ls := map (numbers env) args in Numbers (map (fun q => ev (at_place q ls) e) places)
  | Select keys queries e =>
      let ks := map (numbers env) keys in let qs := map (numbers env) queries in
      Chosen (map (fun q => let of_q := at_place q qs in
        filter (fun j => negb (ev (at_place j ks ++ of_q) e =? 0)) (seq 0 (S q))) places)
  | Width s => Numbers (map (fun js => Z.of_nat (length js)) (chosen env s))
  | Aggr r s v d => let l := numbers env v in
      Numbers (map (fun js => reduce r d (map (fun j => nth j l 0) js)) (chosen env s))
  end.
Fixpoint run (g : graph) (env : list value) : list value :=
  match g with [] => env | nd :: g => run g (env ++ [value_of env nd]) end.
End Run.

(* The value, at every place of a text, of a graph whose last node is its output. *)
Definition output wrap B st ns ny mv (g : graph) (x : list Z) : list Z :=
  numbers (run wrap B st ns ny mv [x] g []) (length g - 1).

(* ---- the graph for every n --------------------------------------------------------------------------------------- *)
Module Build.
(* A function of a program, given how many nodes there are, adds some and names its results. *)
Definition builder (A : Type) := nat -> graph * A.
Definition ret {A} (a : A) : builder A := fun _ => ([], a).
Definition emit (nd : node) : builder nat := fun k => ([nd], k).
Definition bind {A C} (b : builder A) (f : A -> builder C) : builder C := fun k =>
  let (first, a) := b k in let (rest, c) := f a (k + length first) in (first ++ rest, c).
Notation "a <- b ;; c" := (bind b (fun a => c)) (at level 100, b at next level, right associativity).

(* library *)
Definition plus (n : nat) : expr := match n with 0 => Arg 0 | _ => Bin Add (Arg 0) (Const (Z.of_nat n)) end.
Definition equals : expr := Bin Eq (Arg 0) (Arg 1).
Definition shift_right (x n : nat) : builder nat :=
  i <- emit Indices ;; k <- emit (Map (plus n) [i]) ;; q <- emit Indices ;;
  s <- emit (Select [k] [q] equals) ;; emit (Aggr Mean s x 0).
Definition cumsum (b : nat) : builder nat :=
  s <- emit (Select [b] [b] (Bin Ne (Arg 0) (Const 0))) ;; emit (Width s).
Definition where_ (c x y : nat) : builder nat :=
  x_masked <- emit (Map (If (Bin Ne (Arg 1) (Const 0)) (Arg 0) (Const 0)) [x; c]) ;;
  y_masked <- emit (Map (If (Bin Ne (Arg 1) (Const 0)) (Const 0) (Arg 0)) [y; c]) ;;
  emit (Map (If (Bin Eq (Arg 1) (Const 0)) (Arg 0) (Arg 1)) [x_masked; y_masked]).
Definition where3 (c x y z : nat) : builder nat :=
  c0 <- emit (Map (Bin Eq (Arg 0) (Const 0)) [c]) ;; out <- where_ c0 x y ;;
  c2 <- emit (Map (Bin Eq (Arg 0) (Const 2)) [c]) ;; where_ c2 z out.
Definition prefix_fill (x n v : nat) : builder nat :=
  one <- emit (Full 1) ;; no_fill <- shift_right one n ;; filler <- emit (Full (Z.of_nat v)) ;; where_ no_fill x filler.
Definition band (x y : nat) : builder nat := emit (Map (Bin And (Arg 0) (Arg 1)) [x; y]).
Definition bor (x y : nat) : builder nat := emit (Map (Bin Or (Arg 0) (Arg 1)) [x; y]).
Definition invert (x : nat) : builder nat := emit (Map (Invert (Arg 0)) [x]).

(* the next tape *)
Definition get_next (x xl xr : nat) : builder (nat * nat * nat) :=
  is_head <- emit (Map (IsState (Arg 0)) [x]) ;; is_head_right <- emit (Map (IsState (Arg 0)) [xr]) ;;
  q <- emit (Map (Look NextState (Arg 0) (Arg 1)) [x; xl]) ;; x_next <- where_ is_head q x ;;
  s <- emit (Map (Look NextSymbol (Arg 0) (Arg 1)) [xr; x]) ;; x_next <- where_ is_head_right s x_next ;;
  m <- emit (Map (Look Move (Arg 0) (Arg 1)) [x; xl]) ;; move_R <- band m is_head ;;
  ret (is_head, x_next, move_R).
Definition select_move_token (from_left from_right : nat) : builder nat :=
  zero <- emit (Full 0) ;; one <- emit (Full 1) ;; out <- where_ from_left zero one ;;
  two <- emit (Full 2) ;; where_ from_right two out.
Definition move_head (cur right : nat * nat * nat) : builder nat :=
  let '(h, cn, m) := cur in let '(rh, rn, rm) := right in
  lh <- shift_right h 1 ;; ln <- shift_right cn 1 ;; lm <- shift_right m 1 ;;
  a <- band lh lm ;; not_m <- invert m ;; b <- band h not_m ;; from_left <- bor a b ;;
  not_rm <- invert rm ;; c <- band rh not_rm ;; d <- band h m ;; from_right <- bor c d ;;
  which <- select_move_token from_left from_right ;; where3 which ln cn rn.
Definition next_tape (x s : nat) : builder nat :=
  x0 <- shift_right x s ;; xl <- shift_right x (s + 1) ;; xr <- shift_right x (s - 1) ;; xrr <- shift_right x (s - 2) ;;
  cur <- get_next x0 xl xr ;; right <- get_next xr x0 xrr ;; move_head cur right.

(* keys *)
Definition is_sep (x : nat) : builder nat := emit (Map (Bin Eq (Arg 0) (Const 0)) [x]).
Fixpoint hash_loop (n out before shifted : nat) : builder nat :=
  match n with
  | 0 => ret out
  | S n => new <- is_sep shifted ;; before <- bor new before ;;
           to_add <- emit (Map (Bin Mul (Arg 0) (Bin Sub (Const 1) (Arg 1))) [shifted; before]) ;;
           out <- emit (Map (Bin Add (Arg 1) (Bin Mul (Power 1) (Arg 0))) [out; to_add]) ;;
           shifted <- shift_right shifted 1 ;; hash_loop n out before shifted
  end.
Definition hash_n_gram (x n : nat) : builder nat :=
  before <- is_sep x ;; shifted <- shift_right x 1 ;; hash_loop n x before shifted.
Fixpoint tokens_before (n before shifted : nat) : builder (list nat) :=
  match n with
  | 0 => ret []
  | S n => new <- is_sep shifted ;; before <- bor new before ;;
           token <- emit (Map (Bin Mul (Arg 0) (Bin Sub (Const 1) (Arg 1))) [shifted; before]) ;;
           shifted <- shift_right shifted 1 ;; tokens <- tokens_before n before shifted ;; ret (token :: tokens)
  end.
Definition n_gram (x n : nat) : builder (list nat) :=
  before <- is_sep x ;; shifted <- shift_right x 1 ;; tokens <- tokens_before n before shifted ;; ret (x :: tokens).
Definition packed (k : packing) (n count gram : nat) : builder (list nat) :=
  let high := fun m a b => Map (Bin Add (Arg a) (Bin Mul (Power m) (Arg b))) [count; gram] in
  r <- emit (match k with Paper => high n 0 1 | _ => high (n + 1) 1 0 end) ;; ret [r].
Definition hash_n_gram_iter (k : packing) (x n : nat) : builder (list nat) :=
  s <- is_sep x ;; count <- cumsum s ;;
  match k with
  | Tuple => gram <- n_gram x n ;; ret (count :: gram)
  | _ => gram <- hash_n_gram x n ;; packed k n count gram
  end.

(* the look-up: a conjunction of equalities, part by part *)
Fixpoint all_equal (m i : nat) : expr :=             (* the first i + 1 of m keys equal their queries *)
  match i with
  | 0 => Bin Eq (Arg 0) (Arg m)
  | S j => Bin And (all_equal m j) (Bin Eq (Arg i) (Arg (m + i)))
  end.
Fixpoint join (ks qs : list nat) (more : list (nat * nat)) (s : nat) : builder nat :=
  match more with
  | [] => ret s
  | (k, q) :: more => _one <- emit (Select [k] [q] equals) ;;
      let ks := ks ++ [k] in let qs := qs ++ [q] in
      s <- emit (Select ks qs (all_equal (length ks) (length ks - 1))) ;; join ks qs more s
  end.
Definition select_all (k q : nat) (more : list (nat * nat)) : builder nat :=
  s <- emit (Select [k] [q] equals) ;; join [k] [q] more s.
Definition next_tokens (k : packing) (n x : nat) : builder nat :=
  tape <- next_tape x 2 ;; late <- next_tape x 3 ;; key_tape <- prefix_fill late 2 3 ;;
  key <- hash_n_gram_iter k key_tape n ;; query <- hash_n_gram_iter k x n ;;
  s <- select_all (hd 0 key) (hd 0 query) (combine (tl key) (tl query)) ;; emit (Aggr Max s tape 0).

(* a function of so many sequences as a graph, with its results *)
Definition inputs (arity : nat) : graph := map Input (seq 0 arity).
Definition graph_of {A} (arity : nat) (b : builder A) : graph * A := let (g, a) := b arity in (inputs arity ++ g, a).
End Build.

Definition program (k : packing) (n : nat) : graph := fst (Build.graph_of 1 (Build.next_tokens k n 0)).

(* ---- its size ---------------------------------------------------------------------------------------------------- *)
Definition size {A} (b : Build.builder A) (c : nat) : Prop := forall k, length (fst (b k)) = c.
Lemma size_bind {A C} (b : Build.builder A) (f : A -> Build.builder C) c d :
  size b c -> (forall a, size (f a) d) -> size (Build.bind b f) (c + d).
Proof.
  intros Hb Hf k. unfold Build.bind. specialize (Hb k). destruct (b k) as [l a]. simpl in *. specialize (Hf a (k + length l)).
  destruct (f a (k + length l)) as [r e]. simpl in *. rewrite app_length. lia.
Qed.
Lemma size_emit nd : size (Build.emit nd) 1. Proof. intros k. reflexivity. Qed.
Lemma size_ret {A} (a : A) : size (Build.ret a) 0. Proof. intros k. reflexivity. Qed.

Ltac measure := repeat first [apply size_emit | apply size_ret | eapply size_bind; [| intros]].
Lemma size_shift x n : size (Build.shift_right x n) 5. Proof. exact (fun k => eq_refl). Qed.
Lemma size_hash_loop n : forall o b s, size (Build.hash_loop n o b s) (9 * n).
Proof.
  induction n; intros; [apply size_ret |]. replace (9 * S n) with (1 + (1 + (1 + (1 + (5 + 9 * n))))) by lia.
  simpl Build.hash_loop. repeat (apply size_bind; [first [apply size_emit | apply size_shift] | intros]). apply IHn.
Qed.
Lemma size_next_tape x s : size (Build.next_tape x s) 84. Proof. exact (fun k => eq_refl). Qed.
Lemma size_prefix_fill x n v : size (Build.prefix_fill x n v) 10. Proof. exact (fun k => eq_refl). Qed.
(* A key that names so many parts adds so many nodes; every packing pays for its parts once, in the key or in the look-up. *)
Definition keys {A} (b : Build.builder (list A)) (c parts : nat) : Prop :=
  forall k, length (fst (b k)) = c /\ length (snd (b k)) = parts.
Lemma keys_bind {A C} (b : Build.builder A) (f : A -> Build.builder (list C)) c d parts :
  size b c -> (forall a, keys (f a) d parts) -> keys (Build.bind b f) (c + d) parts.
Proof.
  intros Hb Hf k. unfold Build.bind. specialize (Hb k). destruct (b k) as [l a]. simpl in *. specialize (Hf a (k + length l)).
  destruct (f a (k + length l)) as [r e]. simpl in *. rewrite app_length. lia.
Qed.
Lemma keys_cons {A} (b : Build.builder (list A)) (a : A) c parts :
  keys b c parts -> keys (Build.bind b (fun l => Build.ret (a :: l))) c (S parts).
Proof.
  intros Hb k. unfold Build.bind, Build.ret. specialize (Hb k). destruct (b k) as [g l]. simpl in *. rewrite app_nil_r. lia.
Qed.
Lemma size_keys_bind {A C} (b : Build.builder (list A)) (f : list A -> Build.builder C) c d parts :
  keys b c parts -> (forall l, length l = parts -> size (f l) d) -> size (Build.bind b f) (c + d).
Proof.
  intros Hb Hf k. unfold Build.bind. specialize (Hb k). destruct (b k) as [g l]. simpl in *.
  specialize (Hf l ltac:(lia) (k + length g)). destruct (f l (k + length g)). simpl in *. rewrite app_length. lia.
Qed.
Lemma keys_before n : forall b s, keys (Build.tokens_before n b s) (8 * n) n.
Proof.
  induction n; intros; [intros k; auto |]. replace (8 * S n) with (1 + (1 + (1 + (5 + 8 * n)))) by lia.
  simpl Build.tokens_before. repeat (apply keys_bind; [first [apply size_emit | apply size_shift] | intros]).
  apply keys_cons, IHn.
Qed.
Definition parts (k : packing) (n : nat) := match k with Tuple => n + 2 | _ => 1 end.
Lemma size_keys k x n : keys (Build.hash_n_gram_iter k x n) (11 + 9 * n - parts k n) (parts k n).
Proof.
  assert (P : forall c gram, keys (Build.packed k n c gram) 1 1) by (intros c gram i; destruct k; auto).
  assert (H : size (Build.hash_n_gram x n) (1 + (5 + 9 * n))).
  { apply size_bind; [apply size_emit | intros]. apply size_bind; [apply size_shift | intros; apply size_hash_loop]. }
  assert (G : keys (Build.n_gram x n) (1 + (5 + 8 * n)) (S n)).
  { apply keys_bind; [apply size_emit | intros]. apply keys_bind; [apply size_shift | intros]. apply keys_cons, keys_before. }
  assert (C : forall s, size (Build.cumsum s) 2) by (intros s i; reflexivity).
  unfold Build.hash_n_gram_iter. destruct k; simpl parts.
  1, 2: replace (11 + 9 * n - 1) with (1 + (2 + ((1 + (5 + 9 * n)) + 1))) by lia.
  3: replace (11 + 9 * n - (n + 2)) with (1 + (2 + (1 + (5 + 8 * n)))) by lia; replace (n + 2) with (S (S n)) by lia.
  all: apply keys_bind; [apply size_emit | intros]; apply keys_bind; [apply C | intros].
  1, 2: apply keys_bind; [exact H | intros; apply P].
  apply keys_cons, G.
Qed.
Lemma size_join more : forall ks qs s, size (Build.join ks qs more s) (2 * length more).
Proof.
  induction more as [| [k q] more IH]; intros; [apply size_ret |].
  replace (2 * length ((k, q) :: more)) with (1 + (1 + 2 * length more)) by (simpl; lia).
  simpl Build.join. do 2 (apply size_bind; [apply size_emit | intros]). apply IH.
Qed.

Lemma tl_length (l : list nat) : length (tl l) = length l - 1. Proof. destruct l; simpl; lia. Qed.

Theorem size_linear k n : length (program k n) = 201 + 18 * n.
Proof.
  unfold program, Build.graph_of. set (p := parts k n). assert (Hp : 1 <= p <= n + 2) by (unfold p; destruct k; simpl; lia).
  assert (S : size (Build.next_tokens k n 0)
    (84 + (84 + (10 + ((11 + 9 * n - p) + ((11 + 9 * n - p) + ((1 + 2 * (p - 1)) + 1))))))).
  { unfold Build.next_tokens. do 2 (apply size_bind; [apply size_next_tape | intros]).
    apply size_bind; [apply size_prefix_fill | intros].
    eapply size_keys_bind; [apply size_keys | intros key Hk]. eapply size_keys_bind; [apply size_keys | intros query Hq].
    apply size_bind; [| intros; apply size_emit].
    replace (p - 1) with (length (combine (tl key) (tl query))) by (rewrite combine_length, !tl_length, Hk, Hq; apply Nat.min_id).
    unfold Build.select_all. apply size_bind; [apply size_emit | intros; apply size_join]. }
  specialize (S 1). destruct (Build.next_tokens k n 0 1) as [g o]. cbn [fst] in *.
  rewrite app_length. change (length (Build.inputs 1)) with 1. lia.
Qed.
