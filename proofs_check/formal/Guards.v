(* Guards: the theorems speak of something.

   A machine and two tapes that satisfy every hypothesis; on one of them a gram is repeated, on the other never. So
   neither side of the equivalence is always true, and no hypothesis contradicts another. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
Require Import Rasp Machine Program Sharp.

(* One symbol, one state; the head runs to and fro between the end markers. *)
Definition sym z := z =? 4.
Definition st z := z =? 5.
Definition ns (q a : nat) := 5.
Definition ny (q a : nat) := a.
Definition mv (q a : nat) := negb (a =? 2).
Definition written (l : list nat) : nat -> nat := fun c => nth c l 0.

Lemma well_formed l w : w = length l + 1 -> l = [1; 5; 4; 2] \/ l = [1; 5; 4; 4; 4; 2] -> wf st sym w (written l) 1.
Proof.
  intros -> [-> | ->]; constructor; simpl; try lia; try reflexivity;
  intros c Hc H1 H2; unfold last_cell in H2; simpl in H2;
  do 7 (destruct c as [| c]; [try lia; reflexivity |]); lia.
Qed.

Ltac side := unfold st, sym, ns, ny, mv in *; intros;
  repeat match goal with H : (_ =? _) = true |- _ => apply Nat.eqb_eq in H end; subst; try lia; try reflexivity.

(* Every hypothesis of the sharp theorem holds of it. *)
Theorem hypotheses_hold k n t g : 1 <= n -> (k = Paper -> t <= 6 ^ n) ->
  (forall p, p < 5 -> g p = trace ns ny mv 5 (written [1; 5; 4; 2]) 1 p) ->
  (forall p, 4 <= p -> g (p + 1) = next_tokens 6 st ns ny mv k n g p) ->
  ((forall p, p < (t + 1) * 5 -> g p = trace ns ny mv 5 (written [1; 5; 4; 2]) 1 p) <->
   (forall s, 1 <= s <= t -> ~ repeats_gram ns ny mv 5 (written [1; 5; 4; 2]) 1 n s)).
Proof. apply (sharp 6 st sym ns ny mv); try (side; fail). apply well_formed; auto. Qed.

(* Three symbols: `bos a a a q eos` repeats the pair `a a`. *)
Theorem a_tape_repeats : repeats_gram ns ny mv 7 (written [1; 5; 4; 4; 4; 2]) 1 1 3.
Proof. exists 1, 2. repeat split; try lia. intros m Hm. do 2 (destruct m as [| m]; [vm_compute; reflexivity |]). lia. Qed.

(* One symbol: the first tape after the prompt repeats no pair. *)
Theorem a_tape_does_not : ~ repeats_gram ns ny mv 5 (written [1; 5; 4; 2]) 1 1 1.
Proof.
  intros (a & b & Hab & Hb & E). pose proof (E 0 ltac:(lia)) as E0.
  do 3 (destruct a as [| a]; [do 4 (destruct b as [| b]; [try lia; vm_compute in E0; congruence |]); lia |]). lia.
Qed.
