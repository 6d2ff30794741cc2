(* RASP-L: sequences, the core operations, and the library functions that the program uses.

   A sequence gives a number for every position. Every operation is causal: its value at p depends on positions up to p
   only. Tokens are natural numbers without a bound here; `Words.v` brings in 64-bit arithmetic. Each library function
   is written as the library writes it (rasp/library.py), and then shown to be what its name says. *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.

(* ---- core -------------------------------------------------------------------------------------------------------- *)
Definition sequence := nat -> nat.
Definition full (c : nat) : sequence := fun _ => c.
Definition indices : sequence := fun p => p.
Definition tok_map (x : sequence) (f : nat -> nat) : sequence := fun p => f (x p).
Definition seq_map (x y : sequence) (f : nat -> nat -> nat) : sequence := fun p => f (x p) (y p).
Definition selected (k q : sequence) (pred : nat -> nat -> bool) (p : nat) : list nat :=
  filter (fun j => pred (k j) (q p)) (seq 0 (S p)).
Definition sel_width (k q : sequence) pred : sequence := fun p => length (selected k q pred p).
Definition total (l : list nat) := fold_right Nat.add 0 l.
Definition largest (l : list nat) := fold_right Nat.max 0 l.
Definition kqv_mean (k q v : sequence) pred (d : nat) : sequence := fun p =>
  match selected k q pred p with [] => d | l => total (map v l) / length l end.

(* The look-up of the program: a key is a tuple of numbers (most often one), compared part by part. *)
Definition same_key (ks qs : list sequence) (j p : nat) : bool :=
  forallb (fun kq => fst kq j =? snd kq p) (combine ks qs).
Definition matching (ks qs : list sequence) (p : nat) : list nat := filter (fun j => same_key ks qs j p) (seq 0 (S p)).
Definition kqv_max (ks qs : list sequence) (v : sequence) (d : nat) : sequence := fun p =>
  match matching ks qs p with [] => d | l => largest (map v l) end.

(* ---- library ----------------------------------------------------------------------------------------------------- *)
Definition shift_right (x : sequence) (n : nat) : sequence := kqv_mean (fun j => indices j + n) indices x Nat.eqb 0.
Definition cumsum (b : sequence) : sequence := sel_width b b (fun k _ => negb (k =? 0)).
Definition where_ (c x y : sequence) : sequence :=
  seq_map (seq_map x c (fun x m => if m =? 0 then 0 else x)) (seq_map y c (fun y m => if m =? 0 then y else 0))
          (fun x y => if y =? 0 then x else y).
Definition where3 (c x y z : sequence) : sequence :=
  where_ (tok_map c (fun v => if v =? 2 then 1 else 0)) z (where_ (tok_map c (fun v => if v =? 0 then 1 else 0)) x y).
Definition prefix_fill (x : sequence) (n v : nat) : sequence := where_ (shift_right (full 1) n) x (full v).
Definition band (x y : sequence) : sequence := seq_map x y Nat.land.
Definition bor (x y : sequence) : sequence := seq_map x y Nat.lor.
Definition bandnot (x y : sequence) : sequence :=   (* x & ~y on Python integers *)
  seq_map x y (fun a b => Z.to_nat (Z.land (Z.of_nat a) (Z.lnot (Z.of_nat b)))).
Definition flag (b : bool) := if b then 1 else 0.

(* ---- what the library computes ----------------------------------------------------------------------------------- *)
Lemma filter_shift n p : forall m a,
  filter (fun j => j + n =? p) (seq a m) = if (a + n <=? p) && (p <? a + m + n) then [p - n] else [].
Proof.
  induction m; intros a; simpl.
  - destruct (Nat.leb_spec (a + n) p), (Nat.ltb_spec p (a + 0 + n)); simpl; auto; lia.
  - rewrite IHm. destruct (Nat.eqb_spec (a + n) p).
    + destruct (Nat.leb_spec (S a + n) p), (Nat.ltb_spec p (S a + m + n)), (Nat.leb_spec (a + n) p),
        (Nat.ltb_spec p (a + S m + n)); simpl; try lia; f_equal; lia.
    + destruct (Nat.leb_spec (S a + n) p), (Nat.ltb_spec p (S a + m + n)), (Nat.leb_spec (a + n) p),
        (Nat.ltb_spec p (a + S m + n)); simpl; auto; lia.
Qed.

Lemma shift_spec x n p : shift_right x n p = if p <? n then 0 else x (p - n).
Proof.
  unfold shift_right, kqv_mean, selected, indices. rewrite filter_shift.
  destruct (Nat.leb_spec (0 + n) p), (Nat.ltb_spec p (0 + S p + n)), (Nat.ltb_spec p n); simpl; try lia; auto.
  rewrite Nat.add_0_r. apply Nat.div_1_r.
Qed.

Lemma where_spec c x y p : where_ c x y p = if c p =? 0 then y p else x p.
Proof. unfold where_, seq_map. destruct (c p =? 0); [destruct (Nat.eqb_spec (y p) 0); auto | simpl; auto]. Qed.

Lemma fill_spec x n v p : prefix_fill x n v p = if p <? n then v else x p.
Proof. unfold prefix_fill. rewrite where_spec, shift_spec. unfold full. destruct (p <? n); auto. Qed.

Definition is_sep (x : sequence) := tok_map x (fun z => if z =? 0 then 1 else 0).

(* How many separators have been seen, this position included. *)
Definition count (x : sequence) (p : nat) := cumsum (is_sep x) p.
Lemma count_0 x : count x 0 = flag (x 0 =? 0).
Proof. unfold count, cumsum, sel_width, selected, is_sep, tok_map; simpl. destruct (x 0 =? 0); reflexivity. Qed.
Lemma count_S x p : count x (S p) = count x p + flag (x (S p) =? 0).
Proof.
  unfold count, cumsum, sel_width, selected, is_sep, tok_map. rewrite (seq_S (S p)), filter_app, app_length.
  f_equal. simpl. destruct (x (S p) =? 0); reflexivity.
Qed.
Lemma count_le x p : count x p <= S p.
Proof.
  induction p; [rewrite count_0 | rewrite count_S]; unfold flag; destruct (_ =? 0); lia.
Qed.

(* The largest of a list, and the look-up with default 0: an empty list needs no case of its own. *)
Lemma max_le l m : (forall v, In v l -> v <= m) -> largest l <= m.
Proof. unfold largest. induction l; simpl; intros; [lia |]. apply Nat.max_lub; auto. Qed.
Lemma le_max l v : In v l -> v <= largest l.
Proof. unfold largest. induction l; simpl; [tauto |]. intros [-> | ?]; [lia |]. specialize (IHl H). lia. Qed.
Lemma kqv_max_0 ks qs v p : kqv_max ks qs v 0 p = largest (map v (matching ks qs p)).
Proof. unfold kqv_max. destruct matching; auto. Qed.
